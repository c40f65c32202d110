"""A folder can have a path that is longer than the kernel tells. What runs in it doesn't notice,
and who is asked is told what isn't known."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.exec.test_approved import Start, start
from tests.support.harness import PYTHON, Sigwrap
from tests.support.policies import policy

__all__ = ["start"]

FOLDER = b"the path of its folder is too long to be told"
FILE = b"the path of its file is too long to be told"


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


@pytest.mark.parametrize("name", ["ok", "**/ok"])
def test_a_file_there_goes_by_its_name(
    as_user: Sigwrap, start: Start, deep: list[str], name: str
) -> None:
    del start
    rules = f"\n  - {{name: no, commands: ['{name}'], decision: deny}}\n"
    line = ("-p", policy(as_user.folder, rules), "--", *deep, "asks")
    done = as_user.run(*line, input=b"one\n")
    assert done.stdout == b"EACCES\n"
    (event,) = as_user.sealed_events("exec_denied")
    assert event.payload["rule_name"] == "no"


def test_who_is_asked_is_told_each_time(start: Start, as_user: Sigwrap, deep: list[str]) -> None:
    run = start(*deep, "asks")
    for answer, said in ((("approve", "--always"), b"ok word\n"), (("deny",), b"EACCES\n")):
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
    run.asks_again(b"moved")


def test_a_file_there_is_one_like_others(as_user: Sigwrap, start: Start, programs: Path) -> None:
    del start
    rules = "\n  - {name: no, commands: ['true'], decision: deny}\n"
    line = ("-p", policy(as_user.folder, rules), "--", *PYTHON, str(programs / "opens_deep.py"))
    done = as_user.run(*line)
    assert done.stdout.startswith(b"done\n" * 4 + b"sigwrap: /bin/true: denied by rule no"), done
