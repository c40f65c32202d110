"""The same command by another spelling is decided the same."""

from __future__ import annotations

import shutil
import subprocess

from tests.support.harness import Sigwrap
from tests.support.policies import policy
from tests.support.programs import needs

REMOVALS = [
    "cd {parent} && rm -rf kept",
    "cd {parent} && rm -rf ./kept/../kept/",
    "cd {kept} && rm -rf ../kept",
    "cd {kept} && rm -rf .",
    "rm -rf /proc/self/root{kept}",
    "rm -rf /proc/$$/root{kept}",
    "cd {parent} && rm -rf /proc/self/cwd/kept",
    "rm -rf //{kept}//.",
    "rm --recursive --force -- {kept}",
    "cd {parent} && echo kept | xargs rm -rf",
    "cd {parent} && find . -maxdepth 1 -name kept -exec rm -rf {{}} +",
    "cd / && env -C {parent} rm -rf kept",
]
PUSHES = [
    "$(git --exec-path)/git-push --force",
    "git -C . -c a.b=c push -f",
    "git push --mirror",
    "git push . :main",
    "git -c 'alias.x=push --force' x",
    "git z",  # aliases of the user's own: git runs `git push --force` itself
    "git y",
    "git -c remote.x.mirror push",
    "git -c 'alias.x=-c remote.x.mirror push' x",
    "git config alias.w '-c remote.x.mirror push'",
    "git send-pack --force . main",
    "bash -c 'exec -a git-push git --force'",
]


def test_a_folder_is_kept_however_it_is_spelled(as_user: Sigwrap) -> None:
    kept = as_user.folder / "kept"
    kept.mkdir()
    kept.chmod(0o777)
    rules = f"\n  - {{name: kept, commands: [rm], paths: [{kept}], decision: deny}}\n"
    busybox = ["cd {parent} && busybox rm -rf kept"] if shutil.which("busybox") else []
    lines = [f"({line}); echo" for line in REMOVALS + busybox]
    script = "\n".join(lines).format(parent=kept.parent, kept=kept)
    done = as_user.run("-p", policy(as_user.folder, rules), "--", "sh", "-c", script)
    assert done.returncode == 0 and kept.exists()
    denied = [each.payload["argv"] for each in as_user.sealed_events("exec_denied")]
    assert len(denied) >= len(lines), denied


@needs("git")
def test_a_forced_push_is_denied_however_it_is_spelled(as_user: Sigwrap) -> None:
    config = as_user.folder / "config"
    config.write_text("[alias]\n\tz = push --force\n\ty = !git push -f\n")
    config.chmod(0o644)
    env = {"GIT_CONFIG_GLOBAL": str(config), "HOME": str(as_user.folder)}
    subprocess.run(["git", "init", "-q", as_user.folder / "r"], check=True)
    script = f"cd {as_user.folder}/r\n" + "\n".join(PUSHES) + "\ntrue"
    as_user.run("-p", "agent-default", "--", "sh", "-c", script, env=env)
    denied = as_user.sealed_events("exec_denied")
    assert all(each.payload["rule_name"].startswith("force-push") for each in denied)
    assert len(denied) >= len(PUSHES), [each.payload["argv"] for each in denied]
