"""A folder can have a path that is longer than the kernel tells. What runs in it doesn't notice,
and who is asked is told what isn't known."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.exec.test_approved import Start, start
from tests.support.harness import PYTHON, Sigwrap
from tests.support.policies import policy

__all__ = ["start"]

FOLDER = b"the path of its directory is too long to show"
FILE = b"the path of its file is too long to show"


@pytest.fixture
def deep(programs: Path) -> list[str]:
    return [*PYTHON, str(programs / "goes_deep.py")]


def test_what_runs_there_does_not_notice(as_user: Sigwrap, start: Start, deep: list[str]) -> None:
    del start
    natively = as_user.native(*deep, "runs").stdout
    assert natively.count(b"\n") == 11
    shutil.rmtree(as_user.folder / ("d" * 200))
    done = as_user.run("-p", policy(as_user.folder, " []\n"), "--", *deep, "runs")
    assert (done.returncode, done.stdout) == (0, natively), done.stderr
    events = as_user.sealed_events("exec_allowed")
    paths = [each["path"] for event in events for each in event.payload.get("programs", ())]
    assert ".../ok" in paths
    assert ".../link" in paths


def test_who_is_asked_is_told_each_time(start: Start, as_user: Sigwrap, deep: list[str]) -> None:
    run = start(*deep, "asks")
    for answer, said in ((("approve", "--always"), b"ok word\n"), (("deny",), b"126\n")):
        run.process.say(b"word\n")
        question = run.question()
        listed = run.answer("approvals").stdout
        assert FOLDER in listed
        assert FILE in listed
        assert b"file .../ok\n" in listed
        assert run.answer(answer[0], question, *answer[1:]).returncode == 0
        run.out.until(said)
    assert run.end() == 0
    assert len(as_user.sealed_events("approval_requested")) == 2


def test_who_moved_to_another_such_folder_is_asked_about_again(
    start: Start, deep: list[str]
) -> None:
    run = start(*deep, "moves")
    run.process.say(b"word\n")
    run.asks_again()


def test_a_file_there_is_one_like_others(as_user: Sigwrap, start: Start, deep: list[str]) -> None:
    """Also where it signals, and where a denial is said in it."""
    del start
    rules = "\n  - {name: no, commands: ['true'], decision: deny}\n"
    done = as_user.run("-p", policy(as_user.folder, rules), "--", *deep, "opens")
    assert done.stdout.startswith(b"done\n" * 4 + b"sigwrap: denied: /bin/true (rule no"), done


# Nothing is reached from there that a rule keeps, and no link has an allowed name.

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
def from_there(start: Start, as_user: Sigwrap, deep: list[str]) -> Callable[..., list[str]]:
    def run(rules: str, *commands: str) -> list[str]:
        line = ("-p", policy(as_user.folder, rules), "--", *deep, "commands", *commands)
        done = as_user.run(*line)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode().split()

    return run


def test_what_a_rule_keeps_is_not_reached_by_relative_words(
    as_user: Sigwrap, from_there: Callable[..., list[str]]
) -> None:
    kept = as_user.folder / "kept"
    (kept / "x").mkdir(parents=True)
    kept.chmod(0o777)
    words = [command.format(kept=str(kept)[1:]) for command in REACHING]
    assert from_there(KEEP.format(kept=kept), *words) == ["EACCES"] * len(REACHING)
    assert (kept / "x").exists()
    for event in as_user.sealed_events("exec_denied"):
        assert event.payload["rule_name"] in ("keep-rm", "keep-mv")
        assert event.payload["cwd"] == ""


def test_a_link_there_with_an_allowed_name_allows_nothing(
    from_there: Callable[..., list[str]],
) -> None:
    assert from_there(READERS, "./ls ran", "ls /dev/null") == ["EACCES", "/dev/null", "0"]
