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

from tests.support.harness import PYTHON, REFUSED, UNDER_TEST, Sigwrap
from tests.support.policies import policy
from tests.support.waiting import PATIENCE_S, await_that, reader

ASK = """
  - {name: ask, commands: [ok], decision: approve, message: looked at first}
"""
ASK_WHAT_IS_LOADED = """
  - {name: loads, commands: [ok], loads_code: true, decision: approve}
"""
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
        said = self.err.until(rb"sigwrap approve [0-9a-f]+ --store [^\n]+\n")
        return said.split()[-3].decode()

    def answer(self, *words: str) -> subprocess.CompletedProcess[bytes]:
        return self.subject.native(UNDER_TEST, *words)

    def approve_once_changed(self, approval_id: str) -> None:
        """What changes_its_mind.py asks for: a yes to what it was."""
        self.process.say(b"\n")
        self.out.until(rb"changed\n")
        assert self.answer("approve", approval_id).returncode == 0

    def asks_again(self, change: bytes = b"changed") -> str:
        """What is shown of it, which is denied then, after a yes to what it was before."""
        first = self.question()
        self.process.say(b"\n")
        self.out.until(change + rb"\n")
        assert self.answer("approve", first).returncode == 0
        second = self.question()
        assert second != first
        listed = self.answer("approvals").stdout.decode()
        assert "note it has changed since it was asked about: look at it anew" in listed
        assert self.answer("deny", second).returncode == 0
        assert self.out.line() == b"9"
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


@pytest.mark.parametrize("way", ["execve", "thread", "vfork", "execveat", "i386"])
def test_yes(start: Start, as_user: Sigwrap, compiled: Path, way: str) -> None:
    run = start(str(compiled / "call"), way, "./ok", "word")
    assert run.answer("approve", run.question()).returncode == 0
    run.out.until(rb"(ok|\d+) word\n")  # by descriptor, its name is a number
    assert run.end() == 0
    assert [e.type for e in as_user.sealed_events("approval_requested", "approval_granted")] == [
        "approval_requested",
        "approval_granted",
    ]
    event = as_user.events("exec_allowed")[-1]
    assert (event.payload["rule_name"], event.payload["verified"]) == ("ask", True)
    assert event.payload["reason"].startswith("approved by uid ")


@pytest.mark.promise("approvals from elsewhere")
def test_no(start: Start, as_user: Sigwrap) -> None:
    run = start("sh", "-c", "./ok a; echo $?")
    assert run.answer("deny", run.question(), "--message", "not on Fridays").returncode == 0
    assert run.out.line() == b"126"
    run.err.until(rb"sigwrap: \./ok a: denied by rule ask of \S+: not approved: not on Fridays \(")
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
    assert b"nothing waits" in run.answer("approvals").stdout
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
        pytest.param("argument", marks=pytest.mark.promise("what was approved is what ran")),
        "file",
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
    assert ("harmful" in run.asks_again()) == (what == "argument")
    assert _reasons(as_user) == ["granted", "denied"]
    assert b"harm" not in run.out.seen


def test_what_changes_with_each_question_is_denied(
    start: Start, as_user: Sigwrap, programs: Path
) -> None:
    run = start(*PYTHON, str(programs / "changes_its_mind.py"), "content", "content")
    for _ in range(2):
        run.approve_once_changed(run.question())
    assert run.out.line() == b"9"
    assert run.end() == 0
    (event,) = as_user.sealed_events("exec_denied")
    assert event.payload["reason"] == "not approved: it changed again while it was asked about"


def test_a_call_that_became_another_is_judged_anew(
    start: Start, as_user: Sigwrap, programs: Path
) -> None:
    """No rule asks about this one."""
    run = start(*PYTHON, str(programs / "changes_its_mind.py"), "path")
    run.approve_once_changed(run.question())
    assert [run.out.line(), run.out.line()] == [b"bad harmless", b"0"]
    assert run.end() == 0
    event = as_user.sealed_events("exec_allowed")[-1]
    assert event.payload["path"] == "./bad"
    assert "approved" not in event.payload["reason"]


def test_nobody_is_asked_while_a_yes_would_be_in_vain(
    start: Start, as_user: Sigwrap, programs: Path
) -> None:
    run = start(*PYTHON, str(programs / "traced_by_its_parent.py"), "./ok", "x")
    run.err.until(rb"ok x: denied by rule ask of test: it needs approval, which nobody can give ")
    assert run.out.line() == b"%d" % errno.EACCES
    assert run.end() == 7
    assert not as_user.sealed_events("approval_requested")
    (event,) = as_user.events("exec_denied")
    assert event.payload["reason"].startswith("it needs approval, which nobody can give while its")
    assert (event.payload["traced"], event.payload["decision"]) == (True, "deny")


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
    run.err.until(rb"refused: it is inside a supervised session")
    (request,) = as_user.events("approval_requested")
    assert request.payload["exec"]["argv"] == ["./ok", "a"]
    assert run.answer("approve", request.payload["approval_id"]).returncode == 0
    run.out.until(rb"ok a\n")
    run.process.say(b"\n")
    assert run.end() == 0
    (event,) = as_user.sealed_events("control_refused")
    assert event.payload["inside_session"] is True
    assert _reasons(as_user) == ["granted"]


# A yes is one to what variables load, too


def test_a_variable_that_came_since_the_question_meets_its_rule(
    start: Start, as_user: Sigwrap, programs: Path
) -> None:
    rules = """
  - {name: no-libraries, commands: [ok], loads_code: true, decision: deny}
  - {name: ask, commands: [ok], decision: approve}
"""
    policy(as_user.folder, rules)
    run = start(*PYTHON, str(programs / "changes_its_mind.py"), "variable")
    run.approve_once_changed(run.question())
    assert run.out.line() == b"9"
    assert run.end() == 0
    (event,) = as_user.sealed_events("exec_denied")
    assert event.payload["rule_name"] == "no-libraries"


def test_always_is_not_for_what_variables_load(start: Start, as_user: Sigwrap) -> None:
    """The library of that name is another by the second time."""
    policy(as_user.folder, ASK_WHAT_IS_LOADED)
    (as_user.folder / "new.so").write_text("another")
    line = "export LD_PRELOAD=./lib.so; ./ok 1; LD_PRELOAD= mv new.so lib.so; ./ok 1; :"
    run = start("sh", "-c", line)
    first = run.question()
    listed = run.answer("approvals").stdout
    assert b"loads LD_PRELOAD=./lib.so\n" in listed
    assert b"what its variables load may be another next time: no `always` covers it" in listed
    assert run.answer("approve", first, "--always").returncode == 0
    run.out.until(rb"ok 1\n")
    assert run.answer("deny", run.question()).returncode == 0
    assert run.end() == 0
    assert run.out.rest() == b""
    asked = as_user.sealed_events("approval_requested")
    assert [event.payload["loads"] for event in asked] == ["LD_PRELOAD=./lib.so"] * 2


def test_a_value_that_changed_since_the_question_is_not_run(
    start: Start, as_user: Sigwrap, programs: Path
) -> None:
    """The variable has come since the first question, its value since the second."""
    rules = f"{ASK_WHAT_IS_LOADED}  - {{name: ask, commands: [ok], decision: approve}}\n"
    policy(as_user.folder, rules)
    run = start(*PYTHON, str(programs / "changes_its_mind.py"), "variable", "value")
    for loads in (b"", b"loads LD_PRELOAD=/no/library\n"):
        approval_id = run.question()
        assert loads in run.answer("approvals").stdout
        run.approve_once_changed(approval_id)
    assert run.out.line() == b"9"
    assert run.end() == 0
    (event,) = as_user.sealed_events("exec_denied")
    assert event.payload["reason"] == "not approved: it changed again while it was asked about"
