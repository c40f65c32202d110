"""Signals to sigwrap: those that ask a run to end, and those that are passed on."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from sigwrap.events import Event
from sigwrap.linux import procfs
from tests.support.harness import INTERRUPTED, IS_BINARY, PYTHON, UNDER_TEST, Sigwrap
from tests.support.processes import children, tree
from tests.support.waiting import (
    PATIENCE_S,
    Pipe,
    Watch,
    await_end,
    reader,
)

TRAPPING = 'trap "echo cleaned; exit 3" INT TERM; echo ready; while :; do read x; done'


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_signal_to_our_pid_alone_reaches_command_as_term(as_user: Sigwrap, name: str) -> None:
    text = 'trap "echo asked; exit 0" TERM; echo ready; while :; do read x; done'
    process, said = as_user.start_ready("--", "bash", "-c", text)
    process.send_signal(signal.Signals[name])
    said.until(rb"asked")
    assert process.wait(PATIENCE_S) == INTERRUPTED
    received, forwarded = (event for event in as_user.sealed_events() if "interr" in event.type)
    assert received.payload["signal_name"] == name
    assert received.payload["origin"] == "process"
    assert _sender(received) == _sender_as_seen(as_user, process.pid)
    assert (forwarded.type, forwarded.payload["signal_name"]) == ("interrupt_forwarded", "SIGTERM")


def _sender(event: Event) -> tuple[int, int, str, str]:
    payload = event.payload
    fields = ("sender_pid", "sender_uid", "sender_place", "sender_cmd")
    pid, uid, place, cmd = (payload[field] for field in fields)
    return pid, uid, place, cmd


def _sender_as_seen(subject: Sigwrap, outermost: int) -> tuple[int, int, str, str]:
    """This process; but the binary's bootloader hands on what it gets, as if from itself."""
    if IS_BINARY:
        uid = os.getuid() if subject.user is None else subject.user
        return outermost, uid, "outer-process", Path(UNDER_TEST).name
    return os.getpid(), os.getuid(), "outside", procfs.command_line(os.getpid())


def test_a_sender_that_has_ended_is_known_by_its_name_or_its_user(sigwrap: Sigwrap) -> None:
    process, _ = sigwrap.start_ready("--", "sh", "-c", "echo ready; exec cat")
    assert subprocess.run(["sh", "-c", f"kill -TERM {process.pid}"], check=False).returncode == 0
    assert process.wait(PATIENCE_S) == INTERRUPTED
    (received,) = sigwrap.sealed_events("interrupt_received")
    _, uid, place, command = _sender(received)
    assert uid == os.getuid()
    if IS_BINARY:
        assert place == "outer-process"
    else:
        assert (place, command) == ("ended", "") or (place, command[:2]) == ("outside", "sh")


def test_a_sender_inside_is_named_as_such(sigwrap: Sigwrap, programs: Path) -> None:
    """Where interception can't be had, it can signal sigwrap."""
    seccomp = ("317", "0", str(errno.EPERM))
    text = "kill -TERM $(ps -o ppid= $PPID); read x"
    line = sigwrap.line("--best-effort", "--", "sh", "-c", text)
    confined = [*PYTHON, str(programs / "confined.py"), *seccomp, *line]
    process = sigwrap.start_line(confined)
    assert process.wait(PATIENCE_S) == INTERRUPTED
    why = sigwrap.run("why").stdout.decode()
    assert f'which got SIGTERM from {sigwrap.command_pid()} "sh", inside the session' in why


def test_a_signal_that_command_handles_arrives_as_itself(as_user: Sigwrap) -> None:
    """And nothing else does, where it ends by it."""
    text = (
        'trap "echo asked; exit 0" INT; trap "echo another" TERM QUIT; '
        "echo ready; while :; do read x; done"
    )
    process, said = as_user.start_ready("--", "bash", "-c", text)
    process.send_signal(signal.SIGINT)
    assert said.until(rb"(asked|another)\n") == b"asked\n"
    assert process.wait(PATIENCE_S) == INTERRUPTED
    received, forwarded = (event for event in as_user.sealed_events() if "interr" in event.type)
    assert received.payload["signal_name"] == forwarded.payload["signal_name"] == "SIGINT"
    assert received.payload["taken_by"] == "sigwrap"


def test_who_handles_it_and_goes_on_gets_term_within_the_grace(sigwrap: Sigwrap) -> None:
    text = (
        'trap "echo no" INT; trap "echo asked; exit 0" TERM; echo ready; while :; do read x; done'
    )
    process, said = sigwrap.start_ready("--grace", "4", "--", "bash", "-c", text)
    process.send_signal(signal.SIGINT)
    said.until(rb"no\n")
    said.until(rb"asked\n")
    assert process.wait(PATIENCE_S) == INTERRUPTED
    assert sigwrap.interrupts() == ["received", "forwarded", "forwarded"]


@pytest.mark.parametrize("name", ["SIGINT", "SIGHUP"])
def test_who_waits_for_a_signal_handles_it(sigwrap: Sigwrap, programs: Path, name: str) -> None:
    """sigwait(3) and signalfd(2) need no handler: an init is made so."""
    program = str(programs / "counts_signals.py")
    process, said = sigwrap.start_ready("--grace", "1000", "--", *PYTHON, program, name)
    process.send_signal(signal.Signals[name])
    said.until(rb"got %d\n" % signal.Signals[name])
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE_S) == INTERRUPTED


PASSED_ON = ["SIGSEGV", "SIGPIPE", "SIGTTIN", "SIGUSR1", "SIGCONT"]
MORE_OF_THEM = ["SIGABRT", "SIGSYS", "SIGXCPU", "SIGWINCH", "SIGRTMAX"]


@pytest.mark.parametrize(
    "name",
    [*PASSED_ON, *(pytest.param(each, marks=pytest.mark.tier("all")) for each in MORE_OF_THEM)],
)
def test_other_signals_are_passed_on(sigwrap: Sigwrap, name: str, programs: Path) -> None:
    process, said = sigwrap.start_ready("--", *PYTHON, str(programs / "counts_signals.py"), name)
    for _ in range(3):
        process.send_signal(signal.Signals[name])
        said.until(rb"got %d\n" % signal.Signals[name])
    process.communicate(b"\n", PATIENCE_S)
    assert process.returncode == 4
    sender = _sender_as_seen(sigwrap, process.pid)
    assert set(sigwrap.interrupts()) == {"forwarded"}
    assert {_sender(each) for each in sigwrap.sealed_events("interrupt_forwarded")} == {sender}


# What the caller ignores


def _ignoring(*numbers: int) -> Callable[[], None]:
    def change() -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)

    return change


def test_a_signal_that_the_caller_ignores_reaches_a_command_that_handles_it(
    as_user: Sigwrap, programs: Path
) -> None:
    """A script's background job has SIGINT ignored."""
    program = str(programs / "says_interrupts.py")
    line = as_user.line("--grace", "1000", "--", *PYTHON, program)
    process = as_user.start_line([*as_user.as_user(), *line], preexec_fn=_ignoring(signal.SIGINT))
    said = reader(process.stdout)
    said.until(rb"ready")
    as_user.await_reading()
    process.send_signal(signal.SIGINT)
    said.until(rb"got")
    process.communicate(b"\n", PATIENCE_S)
    assert process.returncode == INTERRUPTED


def test_a_signal_that_command_ignores_as_the_caller_does_is_lost(sigwrap: Sigwrap) -> None:
    process = sigwrap.start(
        *("--", "sh", "-c", "echo ready; read x; exit 5"),
        preexec_fn=_ignoring(signal.SIGINT, signal.SIGQUIT, signal.SIGHUP),
    )
    reader(process.stdout).until(rb"ready")
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        process.send_signal(number)
    process.send_signal(signal.SIGWINCH)
    sigwrap.await_event("interrupt_forwarded")
    process.communicate(b"\n", PATIENCE_S)
    assert process.returncode == 5
    assert sigwrap.interrupts() == ["forwarded"]


def test_the_second_signal_of_another_process_kills(sigwrap: Sigwrap, programs: Path) -> None:
    """CI runners: SIGINT, then SIGTERM, then they kill everything. And a time of more than 24 days
    isn't over at once."""
    grace = ("--grace", "1000000000")
    process, _ = sigwrap.start_ready(*grace, "--", *PYTHON, str(programs / "stubborn.py"))
    with Watch(tree(process.pid)) as watch:
        process.send_signal(signal.SIGINT)
        sigwrap.await_event("interrupt_forwarded")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == INTERRUPTED
        assert watch.unharmed == []
        watch.await_ends()
    assert sigwrap.interrupts() == ["received", "forwarded", "escalated"]


def test_timeout_around_us_is_one_interrupt(sigwrap: Sigwrap) -> None:
    """timeout(1) signals its child and then its group."""
    line = sigwrap.line("--grace", "1000", "--", "bash", "-c", TRAPPING)
    process = sigwrap.start_line(["timeout", "1000", *line])
    said = reader(process.stdout)
    said.until(rb"ready")
    sigwrap.await_reading()
    process.terminate()  # as its own clock would, at the end of the time
    said.until(rb"cleaned")
    assert process.wait(PATIENCE_S) in (INTERRUPTED, 124)
    assert sigwrap.interrupts().count("received") == 1
    assert "escalated" not in sigwrap.interrupts()


@pytest.mark.promise("sigwrap is out of reach")
def test_a_signal_from_below_does_not_end_the_run(sigwrap: Sigwrap) -> None:
    """To sigwrap's own processes, under every policy; and it is in the log with its sender."""
    sigwrap.policy = "agent-observe"
    text = "kill -TERM $PPID; kill -KILL $PPID; kill -STOP $(ps -o ppid= $PPID); echo sent; read x"
    process = sigwrap.start("--", "bash", "-c", text)
    reader(process.stdout).until(rb"sent")
    process.communicate(b"\n", PATIENCE_S)
    assert process.returncode == 0
    blocked = [event.payload for event in sigwrap.sealed_events("signal_blocked")]
    assert [payload["signal_name"] for payload in blocked] == ["SIGTERM", "SIGKILL", "SIGSTOP"]
    assert {payload["target_type"] for payload in blocked} == {"parent"}
    assert all(payload["rule_name"].startswith("builtin:") for payload in blocked)


def test_nobody_else_waits_for_the_front(sigwrap: Sigwrap) -> None:
    with Pipe() as pipe:
        process, _ = sigwrap.start_ready(
            "--", "sh", "-c", "echo ready; cat", pass_fds=(pipe.writing,)
        )
        pipe.let_go()
        assert children(process.pid)
        process.terminate()
        await_end(process.pid)
        assert pipe.rest() == b""
        assert procfs.stat(process.pid) is not None
        assert process.wait(PATIENCE_S) == INTERRUPTED
