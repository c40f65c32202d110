"""A yes is one to what runs in that root and folder, whatever paths lead there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.exec.test_approved import Run, Start, start
from tests.support.harness import PYTHON, Sigwrap
from tests.support.programs import may_unshare

__all__ = ["start"]

NOTE = b"in another root or mount namespace: its names may lead elsewhere than yours"
CHANGED = b"note it has changed since it was asked about: look at it anew; " + NOTE


@pytest.fixture
def moving(start: Start, as_user: Sigwrap, programs: Path) -> Start:
    if not may_unshare():
        pytest.skip("needs user namespaces")
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
