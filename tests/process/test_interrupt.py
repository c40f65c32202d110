"""Ctrl+C on a real pseudo-terminal; and signals to sigwrap: those that ask a run to end, and those
that are passed on."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from sigwrap.events import Event
from sigwrap.kernel import procfs
from tests.support.harness import INTERRUPTED, IS_BINARY, PYTHON, UNDER_TEST, Sigwrap
from tests.support.processes import await_key_taken, children, tree
from tests.support.waiting import PATIENCE_S, Pipe, Watch, await_end, reader

TRAPPING = 'trap "echo cleaned; exit 3" INT TERM; echo ready; while :; do read x; done'


# One Ctrl+C


@pytest.mark.promise("ctrl+c")
def test_one_key_lets_a_trapping_shell_clean_up(as_user: Sigwrap) -> None:
    terminal = as_user.ready_on_terminal("--", "bash", "-c", TRAPPING)
    terminal.press("C")
    terminal.output.until(rb"cleaned")
    assert terminal.await_status() == INTERRUPTED
    assert terminal.output.rest().count(b"cleaned") == 0
    (received,) = as_user.sealed_events("interrupt_received")
    assert received.payload["signal_name"] == "SIGINT"
    assert received.payload["origin"] == "terminal"
    assert as_user.events("interrupt_escalated") == []


# Those who don't want to


@pytest.mark.promise("ctrl+c")
def test_the_second_key_kills_at_once(as_user: Sigwrap, programs: Path) -> None:
    terminal = as_user.ready_on_terminal(
        "--grace", "1000", "--", *PYTHON, str(programs / "stubborn.py")
    )
    with Watch(tree(terminal.pid)) as watch:
        terminal.press("C")
        terminal.output.until(rb"\^C")
        as_user.await_event("interrupt_received")
        await_key_taken(terminal.pid)
        terminal.press("C")
        watch.await_ends()
        assert terminal.await_status() == INTERRUPTED
    assert as_user.interrupts() == ["received", "escalated"]
    (escalated,) = as_user.events("interrupt_escalated")
    assert escalated.payload["reason"] == "second interrupt"


def test_without_any_grace_a_stopped_tree_is_killed_all_the_same(sigwrap: Sigwrap) -> None:
    text = "(echo ready; kill -STOP $BASHPID) & trap '' TERM; wait; wait; cat"
    process, _ = sigwrap.start_ready("--grace", "0", "--", "bash", "-c", text)
    process.terminate()
    assert process.wait(9) == INTERRUPTED  # the grace is 10 s otherwise
    assert sigwrap.alive() == []


# On the whole


def test_command_that_moved_to_its_own_session_still_gets_the_interrupt(sigwrap: Sigwrap) -> None:
    """The terminal's signal doesn't reach it, ours does."""
    terminal = sigwrap.ready_on_terminal(
        "--grace", "1000", "--", "setsid", "-w", "bash", "-c", TRAPPING
    )
    terminal.press("C")
    assert terminal.await_status() == INTERRUPTED
    assert sigwrap.alive() == []


def test_many_single_keys_are_never_taken_for_two(sigwrap: Sigwrap) -> None:
    """COMMAND's cleanup would be cut short by an escalation, and the log would tell."""
    cleaning = 'trap "echo cleaned; exit 0" INT; echo ready; read x; read x; read x'
    for _ in range(10):
        terminal = sigwrap.ready_on_terminal("--no-report", "--", "dash", "-c", cleaning)
        terminal.press("C")
        terminal.output.until(rb"cleaned")
        assert terminal.await_status() == INTERRUPTED
        terminal.close()
        assert sigwrap.interrupts() == ["received"]


# Signals of other processes


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


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGTTIN", "SIGUSR1", "SIGCONT", "SIGRTMAX"])
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


def _ignoring() -> None:
    for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def test_a_signal_that_the_caller_ignores_reaches_a_command_that_handles_it(
    as_user: Sigwrap, programs: Path
) -> None:
    """A script's background job has SIGINT ignored. What COMMAND ignores as well is lost."""
    program = str(programs / "says_interrupts.py")
    line = as_user.line("--grace", "1000", "--", *PYTHON, program)
    process = as_user.start_line([*as_user.as_user(), *line], preexec_fn=_ignoring)
    said = reader(process.stdout)
    said.until(rb"ready")
    as_user.await_reading()
    process.send_signal(signal.SIGQUIT)
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGINT)
    said.until(rb"got")
    process.communicate(b"\n", PATIENCE_S)
    assert process.returncode == INTERRUPTED
    assert as_user.interrupts() == ["received", "forwarded"]
    assert as_user.events("interrupt_received")[0].payload["signal_name"] == "SIGINT"


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
