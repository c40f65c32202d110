"""Execs that wait for an answer: real askers, and what they try meanwhile."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.exec.calls import calls
from tests.support.harness import PYTHON, REFUSED, UNDER_TEST, Sigwrap
from tests.support.policies import policy
from tests.support.programs import may_unshare
from tests.support.waiting import PATIENCE_S, await_that, reader

ASK = """
  - {name: ask, commands: [ok], decision: approve, message: looked at first}
"""
NOTE = "its paths may be other files than yours (another root, mount namespace or mount)"
Start = Callable[..., "Run"]


class Run:
    """A session under a policy that asks, answered from outside."""

    def __init__(self, subject: Sigwrap, *words: str, before: Sequence[str] = ()) -> None:
        """`before`: what starts sigwrap."""
        self.subject = subject
        line = subject.line(
            "-p", str(subject.folder / "policy.yaml"), "--approvals", "control", "--", *words
        )
        self.process = subject.start_line([*subject.as_user(), *before, *line])
        self.out = reader(self.process.stdout)
        self.err = reader(self.process.stderr)

    def question(self) -> str:
        said = self.err.until(rb"sigwrap approve [0-9a-f]+ [^\n]+\n")
        return said.partition(b"sigwrap approve ")[2].split()[0].decode()

    def answer(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        return self.subject.native(UNDER_TEST, *words)

    def approve_once_changed(self, approval_id: str) -> None:
        """What changes_its_mind.py asks for: a yes to what it was."""
        self.process.say(b"\n")
        self.out.until(rb"changed\n")
        assert self.answer("approve", approval_id).returncode == 0

    def asks_again(self) -> str:
        """What is shown of it, which is denied then, after a yes to what it was before."""
        first = self.question()
        self.approve_once_changed(first)
        second = self.question()
        assert second != first
        listed = self.answer("approvals").stdout.decode()
        assert "note it changed after the request: check it again" in listed
        assert self.answer("deny", second).returncode == 0
        assert self.out.line() == b"126"
        assert self.end() == 0
        return listed

    def end(self) -> int:
        self.process.stdin.close()
        return self.process.wait(PATIENCE_S)


@pytest.fixture
def start(as_user: Sigwrap, compiled: Path) -> Start:
    for name in ("ok", "bad"):
        shutil.copy(compiled / "first", as_user.folder / name)
        if as_user.user is not None:
            os.chown(as_user.folder / name, as_user.user, as_user.user)
    policy(as_user.folder, ASK)

    def run(*words: str) -> Run:
        return Run(as_user, *words)

    return run


def _reasons(subject: Sigwrap) -> list[str]:
    answers = ("approval_granted", "approval_denied", "approval_expired")
    return [event.payload["reason"] for event in subject.events(*answers)]


def test_yes(start: Start, as_user: Sigwrap, compiled: Path) -> None:
    ways = ("execve", "thread", "vfork", "execveat", "i386")
    run = start("sh", "-c", calls(compiled, ways, "./ok", "word"))
    for _ in ways:
        assert run.answer("approve", run.question()).returncode == 0
        run.out.until(rb"(ok|\d+) word\n")  # by descriptor, its name is a number
    assert run.end() == 0
    answered = as_user.sealed_events("approval_requested", "approval_granted")
    assert [e.type for e in answered] == ["approval_requested", "approval_granted"] * len(ways)
    allowed = [e.payload for e in as_user.events("exec_allowed") if e.payload["rule_name"] == "ask"]
    assert len(allowed) == len(ways)
    for way, payload in zip(ways, allowed, strict=True):
        assert payload["verified"], way
        assert payload["reason"].startswith("approved by uid "), way


@pytest.mark.promise("approvals from elsewhere")
def test_no(start: Start, as_user: Sigwrap) -> None:
    run = start("sh", "-c", "./ok a; echo $?")
    assert run.answer("deny", run.question(), "--message", "not on Fridays").returncode == 0
    assert run.out.line() == b"126"
    run.err.until(rb"sigwrap: denied: \./ok a: .*request denied: not on Fridays \(rule ask")
    assert run.end() == 0
    (event,) = as_user.sealed_events("exec_denied")
    assert event.payload["rule_name"] == "ask"


def test_two_at_once_and_the_tree_goes_on(start: Start, as_user: Sigwrap) -> None:
    """Answered the other way around; what nobody asks about runs all the while."""
    text = "./ok 1 & ./ok 2 & while read line; do /bin/echo $line; done; wait"
    run = start("sh", "-c", text)
    ids = [run.question(), run.question()]
    requested = {
        e.payload["what"]: e.payload["approval_id"] for e in as_user.events("approval_requested")
    }
    assert sorted(requested.values()) == sorted(ids)
    run.process.say(b"meanwhile\n")
    run.out.until(rb"meanwhile\n")
    assert run.answer("deny", requested["./ok 2"]).returncode == 0
    run.process.say(b"still\n")
    run.out.until(rb"still\n")
    assert run.answer("approve", requested["./ok 1"]).returncode == 0
    run.out.until(rb"ok 1\n")
    assert run.end() == 0
    assert b"ok 2" not in run.out.seen
    assert _reasons(as_user) == ["denied", "granted"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_asker_dies_while_it_waits(start: Start, as_user: Sigwrap, number: int) -> None:
    run = start("sh", "-c", "./ok a & echo $!; wait; /bin/echo on; read line")
    asker = int(run.out.line())
    request_id = run.question()
    os.kill(asker, number)
    run.out.until(rb"on\n")
    await_that(lambda: _reasons(as_user) == ["withdrawn"])
    assert b"no approval requests" in run.answer("approvals").stdout
    late = run.answer("approve", request_id)
    assert (late.returncode, b"too late" in late.stderr) == (REFUSED, True)
    run.process.say(b"\n")
    assert run.end() == 0
    assert b"ok a" not in run.out.seen


def test_a_signal_that_the_asker_handles(start: Start, as_user: Sigwrap, programs: Path) -> None:
    """It goes on waiting: nothing is asked twice, and the signal comes with the answer."""
    run = start(*PYTHON, str(programs / "handles_a_signal.py"))
    asker = int(run.out.line())
    request_id = run.question()
    for _ in range(20):
        os.kill(asker, signal.SIGUSR1)
    assert run.answer("deny", request_id).returncode == 0
    assert sorted([run.out.line(), run.out.line()]) == [b"%d" % errno.EACCES, b"handled"]
    assert run.end() == 0
    assert len(as_user.sealed_events("approval_requested")) == 1


@pytest.mark.parametrize(
    "what",
    [
        pytest.param("file", marks=pytest.mark.promise("what was approved is what ran")),
        "content",
        "mapping",
        "large mapping",
    ],
)
def test_what_changed_since_the_question_is_asked_again(
    start: Start, as_user: Sigwrap, what: str, programs: Path
) -> None:
    if what == "large mapping":
        os.truncate(as_user.folder / "ok", 5 << 20)
        what = "mapping"
    run = start(*PYTHON, str(programs / "changes_its_mind.py"), what)
    run.asks_again()
    assert _reasons(as_user) == ["granted", "denied"]
    assert b"harm" not in run.out.seen


@pytest.mark.parametrize(
    ("how", "what"), [("child", "deny"), ("orphan in a session of its own", "approve")]
)
def test_nobody_inside_answers(
    start: Start, as_user: Sigwrap, how: str, what: str, programs: Path
) -> None:
    """It is refused and logged, and the question stays open."""
    line = (*PYTHON, str(programs / "approves_itself.py"), how, UNDER_TEST, what)
    run = start("sh", "-c", './ok a & exec "$@"', "sh", *line)
    run.process.say(run.question().encode() + b"\n")
    run.err.until(rb"refused: it is in a supervised session")
    (request,) = as_user.events("approval_requested")
    assert request.payload["exec"]["argv"] == ["./ok", "a"]
    assert run.answer("approve", request.payload["approval_id"]).returncode == 0
    run.out.until(rb"ok a\n")
    run.process.say(b"\n")
    assert run.end() == 0
    (event,) = as_user.sealed_events("control_refused")
    assert event.payload["inside_session"] is True
    assert _reasons(as_user) == ["granted"]


@pytest.mark.parametrize("what", ["argument", "variable"])
def test_what_the_caller_changes_in_its_memory_has_no_effect(
    start: Start, as_user: Sigwrap, programs: Path, what: str
) -> None:
    """The stub has the words and the variables that the request shows."""
    rules = """
  - {name: loads, commands: [ok], loads_code: true, decision: approve}
  - {name: ask, commands: [ok], decision: approve}
"""
    policy(as_user.folder, rules)
    run = start(*PYTHON, str(programs / "changes_its_mind.py"), what)
    run.approve_once_changed(run.question())
    assert [run.out.line(), run.out.line()] == [b"ok harmless", b"0"]
    assert run.end() == 0
    assert _reasons(as_user) == ["granted"]
    (allowed,) = [e for e in as_user.events("exec_allowed") if "approval_id" in e.payload]
    assert allowed.payload["rule_name"] == "ask"


# A yes is one to what runs in that root and folder, whatever paths lead there.


@pytest.fixture
def moves(as_user: Sigwrap, programs: Path) -> list[str]:
    if not may_unshare():
        pytest.skip("needs user namespaces")
    (as_user.folder / "sub").mkdir()
    return [*PYTHON, str(programs / "changes_its_mind.py")]


@pytest.mark.parametrize("what", ["folder", "root"])
def test_what_moved_since_the_question_is_asked_again(
    start: Start, as_user: Sigwrap, moves: list[str], what: str
) -> None:
    assert f"check it again; {NOTE}" in start(*moves, what).asks_again()
    first, _ = as_user.sealed_events("approval_requested")
    assert NOTE not in first.payload["note"]


@pytest.mark.parametrize("what", ["root", "folder"])
def test_always_does_not_cover_another_place(
    start: Start, as_user: Sigwrap, moves: list[str], what: str
) -> None:
    run = start(*moves, "afterwards", what)
    assert run.answer("approve", run.question(), "--always").returncode == 0
    assert [run.out.line(), run.out.line()] == [b"ok harmless", b"0"]
    second = run.question()
    assert NOTE.encode() in run.answer("approvals").stdout
    assert run.answer("deny", second).returncode == 0
    assert run.out.line() == b"126"
    assert run.end() == 0
    asked = as_user.sealed_events("approval_requested")
    assert [NOTE in event.payload["note"] for event in asked] == [False, True]


@pytest.mark.usefixtures("start")
def test_a_folder_that_something_is_mounted_over_is_noted(as_user: Sigwrap) -> None:
    """Whoever looks by its path sees what is mounted, here by COMMAND and for sigwrap as well."""
    if not may_unshare():
        pytest.skip("needs user namespaces")
    policy(as_user.folder, ASK, "session: {mounts: true}")
    covers = "mkdir p && cd p && mount -t tmpfs none ../p && ../ok 1"
    words = ("sh", "-c", f'{covers}; cd "$PWD"; ../ok 2; :')
    run = Run(as_user, *words, before=("unshare", "-Urm"))
    first = run.question()
    listed = run.answer("approvals").stdout
    assert b"directory %b/p\n" % str(as_user.folder).encode() in listed
    assert b"note %b" % NOTE.encode() in listed
    assert b"approved once only" in run.answer("approve", first, "--always").stderr
    second = run.question()
    listed = run.answer("approvals").stdout
    assert b"directory %b/p\n" % str(as_user.folder).encode() in listed
    assert b"note" not in listed
    assert run.answer("approve", second).returncode == 0
    assert run.end() == 0
    assert run.out.rest() == b"ok 1\nok 2\n"
