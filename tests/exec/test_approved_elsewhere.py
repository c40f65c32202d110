"""A yes is one to what runs in that root and folder, whatever paths lead there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.exec.test_approved import ASK, Run, Start, start
from tests.support.harness import PYTHON, Sigwrap
from tests.support.policies import policy
from tests.support.programs import may_unshare

__all__ = ["start"]

NOTE = "in another root or mount namespace: its names may lead elsewhere than yours"


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
def test_what_moved_since_the_question_is_asked_again(
    moving: Start, as_user: Sigwrap, what: str
) -> None:
    run = moving(what, "meanwhile")
    assert f"look at it anew; {NOTE}" in run.asks_again(b"moved")
    first, _ = as_user.sealed_events("approval_requested")
    assert NOTE not in first.payload["note"]


@pytest.mark.parametrize("what", ["root", "folder"])
def test_always_does_not_cover_another_place(moving: Start, as_user: Sigwrap, what: str) -> None:
    run = moving(what, "afterwards")
    assert run.answer("approve", run.question(), "--always").returncode == 0
    assert [run.out.line(), run.out.line()] == [b"ok harmless", b"0"]
    second = run.question()
    assert NOTE.encode() in run.answer("approvals").stdout
    assert run.answer("deny", second).returncode == 0
    assert run.out.line() == b"9"
    assert run.end() == 0
    asked = as_user.sealed_events("approval_requested")
    assert [NOTE in event.payload["note"] for event in asked] == [False, True]


@pytest.fixture
def in_mounts_of_its_own(start: Start, as_user: Sigwrap) -> Start:
    """Sigwrap itself: what COMMAND mounts is mounted for both."""
    del start
    if not may_unshare():
        pytest.skip("needs user namespaces")
    policy(as_user.folder, ASK, "session: {mounts: true}")

    def run(*words: str) -> Run:
        return Run(as_user, *words, before=("unshare", "-Urm"))

    return run


def test_a_folder_that_something_is_mounted_over_is_noted(
    in_mounts_of_its_own: Start, as_user: Sigwrap
) -> None:
    """Whoever looks by its path sees what is mounted."""
    covers = "mkdir p && cd p && mount -t tmpfs none ../p && ../ok 1"
    run = in_mounts_of_its_own("sh", "-c", f'{covers}; cd "$PWD"; ../ok 2; :')
    first = run.question()
    listed = run.answer("approvals").stdout
    assert b"folder %b/p\n" % str(as_user.folder).encode() in listed
    assert b"note something is mounted over its folder, or over one above: " in listed
    assert b"only once" in run.answer("approve", first, "--always").stderr
    second = run.question()
    listed = run.answer("approvals").stdout
    assert b"folder %b/p\n" % str(as_user.folder).encode() in listed
    assert b"note" not in listed
    assert run.answer("approve", second).returncode == 0
    assert run.end() == 0
    assert run.out.rest() == b"ok 1\nok 2\n"
