"""By a bind mount any file has any path. A denying rule knows the file that it names all the same,
and what has many names of its own goes by them there too."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.support.harness import PYTHON, Sigwrap
from tests.support.policies import policy

RULES = "\n  - {name: no-rmdir, commands: [rmdir], decision: deny}\n"
RMDIR, LS = shutil.which("rmdir"), shutil.which("ls")
OVER_A_FILE = f"mount --bind {RMDIR} {LS}"
OVER_A_FOLDER = "mount --bind . /usr/local/bin"
WAYS = [
    f"{OVER_A_FILE} && ls x",
    f"{OVER_A_FILE} && env ls x",
    f"{OVER_A_FILE} && /lib64/ld-linux-x86-64.so.2 {LS} x",
    f"{OVER_A_FILE} && ln -s {LS} link && ./link x",
    f"{OVER_A_FILE} && echo \\#!{LS} >script && chmod +x script && ./script",
    f"{OVER_A_FOLDER} && touch /usr/local/bin/zz && mount --bind {RMDIR} /usr/local/bin/zz && zz x",
    f"mkdir a && touch a/zz && mount --bind a a && mount --bind {RMDIR} a/zz && "
    "mount --move a /usr/local/bin && zz x",
    f"mkdir root && mount --rbind / root && mount --bind {RMDIR} root{LS} && "
    "cd root && pivot_root . tmp && ls x",
    "mkdir up work && mount -t overlay o -o lowerdir=/usr/bin,upperdir=up,workdir=work /usr/bin && "
    "{ mv /usr/bin/rmdir /usr/bin/zz || exit 32; } && zz x",
]


@pytest.fixture
def mounts(as_user: Sigwrap) -> Sigwrap:
    natively = as_user.native("unshare", "-Urm", "sh", "-c", f"{OVER_A_FILE} && ls /none")
    if b"failed to remove" not in natively.stderr:
        pytest.skip("needs user namespaces")
    return as_user


def test_in_a_namespace_of_the_callers(mounts: Sigwrap) -> None:
    """What can't be mounted, or written to in an overlay by this user, is left out."""
    each = 'mkdir "$n" && cd "$n" && unshare -Urm sh -c "$1"; echo "$n $?"; cd ..; n=$((n + 1))'
    script = f"try() {{ {each}; }}; n=0\n" + "\n".join(f"try '{way}'" for way in WAYS)
    path = policy(mounts.folder, RULES)
    done = mounts.run("-p", path, "--", "sh", "-c", script, cwd=str(mounts.folder))
    said = dict(line.split() for line in done.stdout.splitlines())
    assert len(said) == len(WAYS)
    for number, way in enumerate(WAYS):
        assert said[b"%d" % number] in (b"126", b"32"), (way, done.stderr)


def test_in_the_namespace_of_sigwrap_itself(mounts: Sigwrap) -> None:
    inner = f"{OVER_A_FILE} || exit; ls x; echo $?; umount {LS}; ls /none; echo $?"
    line = mounts.line("-p", policy(mounts.folder, RULES), "--", "sh", "-c", inner)
    done = mounts.start_line([*mounts.as_user(), "unshare", "-Urm", *line])
    said, errors = done.communicate()
    assert said == b"126\n2\n" or (said == b"" and b"mount: " in errors), errors
    for event in mounts.sealed_events("exec_denied"):
        assert event.payload["rule_name"] == "no-rmdir"
        assert event.payload["programs"][1]["path"] == RMDIR


def test_a_program_that_no_rule_denies_is_what_it_is(mounts: Sigwrap) -> None:
    """A sandbox binds programs over their own names, and the system's folders into its root."""
    inner = (
        f"mount --bind {LS} {LS} && ls / >&2 && mount --rbind /usr /usr && ls / >&2 && "
        "mkdir root && mount --rbind / root && cd root && pivot_root . tmp && ls / >&2; echo $?"
    )
    line = ("-p", policy(mounts.folder, RULES), "--", "unshare", "-Urm", "sh", "-c", inner)
    done = mounts.run(*line, cwd=str(mounts.folder))
    assert done.stdout == b"0\n" or b"mount: " in done.stderr, done.stderr
    assert mounts.sealed_events("exec_denied") == []


def test_by_another_mount_it_is_another_file(mounts: Sigwrap, programs: Path) -> None:
    """Beside it lie other libraries. The link is flipped between the look and the load."""
    for name in ("here", "there"):
        (mounts.folder / name).mkdir(mode=0o777)
        shutil.copy("/usr/bin/readlink", mounts.folder / name / "tool")
    rules = """
  - {name: ours, commands: [./here/tool], decision: allow}
  - {name: others, commands: [tool, link], decision: deny}
"""
    path = policy(mounts.folder, rules)
    line = [*PYTHON, str(programs / "flips_mounts.py"), "150"]
    done = mounts.run("-p", path, "--", *line, cwd=str(mounts.folder))
    said = Counter(done.stdout.decode().split())
    assert set(said) <= {str(mounts.folder / "here" / "tool"), "nothing", "denied"}, said
    assert said["denied"] and len(said) > 1, said
