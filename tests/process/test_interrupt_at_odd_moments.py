"""Interrupts at odd moments: before COMMAND is there, after it, and while somebody is stopped."""

from __future__ import annotations

import os
import select
import signal
from pathlib import Path

import pytest

from tests.support.harness import INTERRUPTED, IS_BINARY, PYTHON, Sigwrap
from tests.support.processes import Roles, tree
from tests.support.waiting import (
    PATIENCE_S,
    await_state,
    reader,
)

TRAPPING = 'trap "echo cleaned; exit 3" INT TERM; echo ready; while :; do read x; done'


def test_interrupt_at_every_moment_of_the_start(sigwrap: Sigwrap) -> None:
    # Its outer process has forked, but passes nothing on yet, at the binary's second: if it dies
    # then, PyInstaller's inner one waits for it for ever, and has run nothing of ours.
    for process_count in (1, 3, 4) if IS_BINARY else (1, 2, 3):
        process = sigwrap.start("--grace", "1", "--", "cat")
        poll = select.poll()
        while process.poll() is None and len(tree(process.pid)) < process_count:
            poll.poll(1)
        process.terminate()
        assert process.wait(PATIENCE_S) in (INTERRUPTED, -signal.SIGTERM)
    assert sigwrap.alive() == []


def test_interrupt_while_leftovers_are_cleared(sigwrap: Sigwrap, programs: Path) -> None:
    """COMMAND has ended; a key press kills what it left, at once."""
    text = f"{' '.join(PYTHON)} {programs}/leftover.py & read line"
    process = sigwrap.start("--", "bash", "-c", text, stderr=None)
    said = reader(process.stdout)
    said.until(rb"here")
    process.say(b"\n")
    said.until(rb"asked")
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    status = process.wait(PATIENCE_S)
    if status == 0:  # a machine on which all leftovers were cleared before the keys came
        assert sigwrap.interrupts() == []
    else:
        assert (status, sigwrap.interrupts()) == (INTERRUPTED, ["received", "escalated"])
    assert sigwrap.alive() == []


@pytest.mark.fault(
    "front process and supervisor",
    "SIGSTOP to the supervisor, then an interrupt",
    sees="sigwrap continues it; the run ends with 130",
    keeps="complete",
)
def test_a_stopped_supervisor_does_not_save_the_tree(sigwrap: Sigwrap) -> None:
    """SIGSTOP from outside: it is woken, and the run ends as asked."""
    process, said = sigwrap.start_ready("--", "bash", "-c", TRAPPING)
    supervisor = Roles.of(process.pid).supervisor
    os.kill(supervisor, signal.SIGSTOP)
    process.terminate()
    said.until(rb"cleaned")
    assert process.wait(PATIENCE_S) == INTERRUPTED


@pytest.mark.fault(
    "front process and supervisor",
    "SIGSTOP and SIGCONT to sigwrap",
    sees="nothing",
    keeps="complete",
)
def test_stop_and_continue_of_our_pid(sigwrap: Sigwrap) -> None:
    process, _ = sigwrap.start_ready("--", "sh", "-c", "echo ready; read x; echo got $x")
    os.kill(process.pid, signal.SIGSTOP)
    await_state(process.pid, "T")
    os.kill(process.pid, signal.SIGCONT)
    process.communicate(b"word\n", PATIENCE_S)
    assert process.returncode == 0
