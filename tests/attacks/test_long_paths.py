"""From a folder whose path is longer than the kernel tells, nothing is reached that a rule keeps,
and no link has an allowed name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.harness import PYTHON, Sigwrap
from tests.support.policies import policy

KEEP = """
  - {{name: keep-rm, commands: [rm], paths: ["{kept}", "{kept}/**"], decision: deny}}
  - {{name: keep-mv, commands: [mv], sources: ["{kept}", "{kept}/**"], decision: deny}}
"""
REACHING = (
    "rm -rf @/{kept}",
    "rm -rf build/../@/{kept}/x",
    "rm -rf /proc/self/cwd/@/{kept}",
    "mv @/{kept}/x .",
)
READERS = """
  - {name: start, commands: ["python*", "**/python*"], decision: allow}
  - {name: readers, commands: [ls, "l?", "**/ls"], decision: allow}
  - {name: audited, commands: [ls], decision: audit}
  - {name: rest, commands: ["*"], decision: deny}
"""


@pytest.fixture
def kept(as_user: Sigwrap) -> Path:
    folder = as_user.folder / "kept"
    (folder / "x").mkdir(parents=True)
    folder.chmod(0o777)
    return folder


def _run(as_user: Sigwrap, programs: Path, rules: str, *commands: str, home: str = "") -> list[str]:
    chosen = rules if rules.endswith(".yaml") else policy(as_user.folder, rules)
    line = (*PYTHON, str(programs / "from_a_long_path.py"), *commands)
    environment = {"PWD": str(as_user.folder), "HOME": home or str(as_user.folder)}
    done = as_user.run("-p", chosen, "--approvals", "deny", "--", *line, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().split()


def test_what_a_rule_keeps_is_not_reached_by_relative_words(
    as_user: Sigwrap, programs: Path, kept: Path
) -> None:
    words = [command.format(kept=str(kept)[1:]) for command in REACHING]
    rules = KEEP.format(kept=kept)
    assert _run(as_user, programs, rules, *words) == ["EACCES"] * len(REACHING)
    assert (kept / "x").exists()
    for event in as_user.sealed_events("exec_denied"):
        assert event.payload["rule_name"] in ("keep-rm", "keep-mv")
        assert event.payload["cwd"].startswith(f"{as_user.folder}/ddd")


def test_a_shipped_policy_keeps_the_home_folder_and_lets_the_rest_be(
    as_user: Sigwrap, programs: Path, kept: Path
) -> None:
    (kept / ".ssh").mkdir()
    reach = f"rm -rf @/{kept}/.ssh"
    honest = ("cp -r build other", "rm -rf build/x", "mv other ../moved", "rm -rf ../moved .x")
    free = as_user.folder / "free.yaml"  # the home folder is in the project here
    free.write_text(
        "version: 1\nname: free\nextends: agent-default\nfile_rules: [{name: free, paths: [/**], "
        "operations: [read, write, create, delete], decision: allow}]\n"
    )
    found = _run(as_user, programs, str(free), *honest, reach, home=str(kept))
    assert found == ["0", "0", "0", "0", "EACCES"]
    assert (kept / ".ssh").exists()


def test_a_link_there_with_an_allowed_name_allows_nothing(as_user: Sigwrap, programs: Path) -> None:
    assert _run(as_user, programs, READERS, "./ls ran", "ls /dev/null") == [
        "EACCES",
        "/dev/null",
        "0",
    ]
