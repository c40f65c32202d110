"""A yes is one to what runs in that root and folder, whatever paths lead there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.exec.test_approved import Run, Start, start
from tests.support.harness import PYTHON, Sigwrap
from tests.support.policies import policy

__all__ = ["start"]

NOTE = b"in another root or mount namespace: its names may lead elsewhere than yours"
CHANGED = b"note it has changed since it was asked about: look at it anew; " + NOTE


@pytest.fixture
def moving(start: Start, as_user: Sigwrap, programs: Path) -> Start:
    (as_user.folder / "sub").mkdir()

    def run(what: str, when: str) -> Run:
        program = "./ok" if what == "root" else str(as_user.folder / "ok")
        return start(*PYTHON, str(programs / "moves_it.py"), what, when, program)

    return run


@pytest.mark.parametrize("what", ["folder", "root"])
def test_what_moved_since_the_question_is_asked_again(moving: Start, what: str) -> None:
    run = moving(what, "meanwhile")
    first = run.question()
    assert NOTE not in run.answer("approvals").stdout
    run.process.say(b"\n")
    run.out.until(rb"moved\n")
    assert run.answer("approve", first).returncode == 0
    second = run.question()
    assert CHANGED in run.answer("approvals").stdout
    assert run.answer("deny", second).returncode == 0
    assert run.out.line() == b"9"
    assert run.end() == 0


@pytest.mark.parametrize("what", ["folder", "root"])
def test_always_does_not_cover_another_place(moving: Start, as_user: Sigwrap, what: str) -> None:
    run = moving(what, "afterwards")
    assert run.answer("approve", run.question(), "--always").returncode == 0
    assert [run.out.line(), run.out.line()] == [b"ok harmless", b"0"]
    second = run.question()
    assert NOTE in run.answer("approvals").stdout
    assert run.answer("deny", second).returncode == 0
    assert run.out.line() == b"9"
    assert run.end() == 0
    asked = as_user.sealed_events("approval_requested")
    assert [NOTE.decode() in event.payload["note"] for event in asked] == [False, True]


def test_a_variable_that_came_since_the_question_meets_its_rule(
    start: Start, as_user: Sigwrap, programs: Path
) -> None:
    rules = """
  - {name: no-libraries, commands: [ok], loads_code: true, decision: deny}
  - {name: ask, commands: [ok], decision: approve}
"""
    policy(as_user.folder, rules)
    run = start(*PYTHON, str(programs / "changes_its_mind.py"), "variable")
    approval_id = run.question()
    run.process.say(b"\n")
    run.out.until(rb"changed\n")
    assert run.answer("approve", approval_id).returncode == 0
    assert run.out.line() == b"9"
    assert run.end() == 0
    (event,) = as_user.sealed_events("exec_denied")
    assert event.payload["rule_name"] == "no-libraries"
