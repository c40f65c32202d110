"""Ctrl+C, on a real pseudo-terminal."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.support.harness import INTERRUPTED, PYTHON, Sigwrap
from tests.support.processes import await_key_taken, tree
from tests.support.waiting import Watch

DEFAULT_GRACE_S = 10.0

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


def test_one_key_does_not_cut_a_pythons_cleanup_short(as_user: Sigwrap, programs: Path) -> None:
    """A SIGTERM on top of the terminal's SIGINT would."""
    line = ("--grace", "1000", "--", *PYTHON, str(programs / "cleaning.py"))
    terminal = as_user.ready_on_terminal(*line)
    terminal.press("C")
    terminal.output.until(rb"interrupted")
    await_key_taken(terminal.pid)  # a Python that ends has no handler any more
    terminal.type("\n")
    terminal.output.until(rb"cleaned")
    assert terminal.await_status() == INTERRUPTED
    assert not {"forwarded", "escalated"} & set(as_user.interrupts())


def test_one_who_traps_only_term_gets_it_at_once(sigwrap: Sigwrap) -> None:
    text = 'trap "" QUIT; trap "echo asked; exit 0" TERM; echo ready; while :; do read x; done'
    terminal = sigwrap.ready_on_terminal("--grace", "1000", "--", "bash", "-c", text)
    terminal.press("\\")
    terminal.output.until(rb"asked")
    assert terminal.await_status() == INTERRUPTED
    assert sigwrap.interrupts() == ["received", "forwarded"]
    (received,) = sigwrap.sealed_events("interrupt_received")
    assert (received.payload["signal_name"], received.payload["origin"]) == ("SIGQUIT", "terminal")


# Those who don't want to


def test_the_graces_end_kills(sigwrap: Sigwrap, programs: Path) -> None:
    terminal = sigwrap.ready_on_terminal(
        "--grace", "1", "--", *PYTHON, str(programs / "stubborn.py")
    )
    with Watch(tree(terminal.pid)) as watch:
        pressed = time.monotonic()
        terminal.press("C")
        assert terminal.await_status() == INTERRUPTED
        assert time.monotonic() - pressed >= 1.0
        assert watch.unharmed == []
        watch.await_ends()
        assert watch.zombies == []
    assert sigwrap.interrupts() == ["received", "forwarded", "escalated"]


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


def test_an_impatient_user(sigwrap: Sigwrap, programs: Path) -> None:
    terminal = sigwrap.ready_on_terminal(
        "--grace", "1000", "--", *PYTHON, str(programs / "stubborn.py")
    )
    os.write(terminal.master, b"\x03" * 20)
    for _ in range(3):
        terminal.press("C")
        terminal.output.until(rb"\^C")
    terminal.press("\\")
    terminal.press("C")
    assert terminal.await_status() == INTERRUPTED
    assert sigwrap.interrupts().count("received") == 1
    assert sigwrap.interrupts().count("escalated") <= 1


def test_without_any_grace_a_stopped_tree_is_killed_all_the_same(sigwrap: Sigwrap) -> None:
    text = "(echo ready; kill -STOP $BASHPID) & trap '' TERM; wait; wait; cat"
    process, _ = sigwrap.start_ready("--grace", "0", "--", "bash", "-c", text)
    process.terminate()
    assert process.wait(DEFAULT_GRACE_S - 1) == INTERRUPTED
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


@pytest.mark.parametrize("count", [10, pytest.param(100, marks=pytest.mark.tier("all"))])
def test_many_single_keys_are_never_taken_for_two(sigwrap: Sigwrap, count: int) -> None:
    """COMMAND's cleanup would be cut short by an escalation, and the log would tell."""
    cleaning = 'trap "echo cleaned; exit 0" INT; echo ready; read x; read x; read x'
    for _ in range(count):
        terminal = sigwrap.ready_on_terminal("--no-report", "--", "dash", "-c", cleaning)
        terminal.press("C")
        terminal.output.until(rb"cleaned")
        assert terminal.await_status() == INTERRUPTED
        terminal.close()
        assert sigwrap.interrupts() == ["received"]
