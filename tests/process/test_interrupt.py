"""Ctrl+C, on a real pseudo-terminal."""

from __future__ import annotations

import os
import shutil
import socket
import time
from pathlib import Path

import pytest

from tests.support.harness import INTERRUPTED, PYTHON, Sigwrap
from tests.support.processes import await_key_taken, tree
from tests.support.programs import needs
from tests.support.waiting import (
    PATIENCE_S,
    Reader,
    Watch,
)

DEFAULT_GRACE_S = 10.0

TRAPPING = 'trap "echo cleaned; exit 3" INT TERM; echo ready; while :; do read x; done'


# One Ctrl+C


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


def test_one_key_ends_what_has_no_handler(sigwrap: Sigwrap) -> None:
    terminal = sigwrap.ready_on_terminal("--", "sh", "-c", "echo ready; exec cat")
    terminal.press("C")
    assert terminal.await_status() == INTERRUPTED


def test_quit_key(sigwrap: Sigwrap) -> None:
    terminal = sigwrap.ready_on_terminal("--", "sh", "-c", "ulimit -c 0; echo ready; exec cat")
    terminal.press("\\")
    assert terminal.await_status() == INTERRUPTED
    (received,) = sigwrap.sealed_events("interrupt_received")
    assert (received.payload["signal_name"], received.payload["origin"]) == ("SIGQUIT", "terminal")


def test_one_who_traps_only_term_gets_it_at_once(sigwrap: Sigwrap) -> None:
    text = 'trap "" QUIT; trap "echo asked; exit 0" TERM; echo ready; while :; do read x; done'
    terminal = sigwrap.ready_on_terminal("--grace", "1000", "--", "bash", "-c", text)
    terminal.press("\\")
    terminal.output.until(rb"asked")
    assert terminal.await_status() == INTERRUPTED
    assert sigwrap.interrupts() == ["received", "forwarded"]


def test_one_who_handles_the_key_and_goes_on_gets_term_within_the_grace(sigwrap: Sigwrap) -> None:
    text = (
        'trap "echo no" INT; trap "echo asked; exit 0" TERM; echo ready; while :; do read x; done'
    )
    terminal = sigwrap.ready_on_terminal("--grace", "1", "--", "bash", "-c", text)
    terminal.press("C")
    terminal.output.until(rb"no")
    terminal.output.until(rb"asked")
    assert terminal.await_status() == INTERRUPTED
    assert sigwrap.interrupts() == ["received", "forwarded"]


def test_its_status_is_130_even_where_command_ends_with_0(sigwrap: Sigwrap) -> None:
    terminal = sigwrap.ready_on_terminal("--", "bash", "-c", TRAPPING.replace("exit 3", "exit 0"))
    terminal.press("C")
    assert terminal.await_status() == INTERRUPTED


# Those who don't want to


def test_the_graces_end_kills(sigwrap: Sigwrap, programs: Path) -> None:
    terminal = sigwrap.ready_on_terminal(
        "--grace", "3", "--", *PYTHON, str(programs / "stubborn.py")
    )
    with Watch(tree(terminal.pid)) as watch:
        pressed = time.monotonic()
        terminal.press("C")
        assert terminal.await_status() == INTERRUPTED
        assert time.monotonic() - pressed >= 3.0
        assert watch.unharmed == []
        watch.await_ends()
        assert watch.zombies == []
    assert sigwrap.interrupts() == ["received", "forwarded", "escalated"]


@pytest.mark.parametrize("grace", ["0", "0.05"])
def test_a_short_grace(sigwrap: Sigwrap, grace: str, programs: Path) -> None:
    terminal = sigwrap.ready_on_terminal(
        "--grace", grace, "--", *PYTHON, str(programs / "stubborn.py")
    )
    terminal.press("C")
    assert terminal.await_status(DEFAULT_GRACE_S - 1) == INTERRUPTED


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


def test_a_stopped_tree_is_killed_all_the_same(sigwrap: Sigwrap) -> None:
    text = "(echo ready; kill -STOP $BASHPID) & trap '' TERM; wait; wait; cat"
    process, _ = sigwrap.start_ready("--grace", "0.1", "--", "bash", "-c", text)
    process.terminate()
    assert process.wait(PATIENCE_S) == INTERRUPTED
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


@pytest.mark.parametrize("quarter", range(4))
def test_a_hundred_single_keys_are_never_taken_for_two(sigwrap: Sigwrap, quarter: int) -> None:
    """COMMAND's cleanup would be cut short by an escalation, and the log would tell."""
    cleaning = 'trap "echo cleaned; exit 0" INT; echo ready; read x; read x; read x'
    for _ in range(25):
        terminal = sigwrap.ready_on_terminal("--no-report", "--", "dash", "-c", cleaning)
        terminal.press("C")
        terminal.output.until(rb"cleaned")
        assert terminal.await_status() == INTERRUPTED
        terminal.close()
        assert sigwrap.interrupts() == ["received"]


@needs("npm")
def test_npm_start_of_a_server(sigwrap: Sigwrap, programs: Path) -> None:
    package = '{"name": "p", "version": "1.0.0", "scripts": {"start": "node server.js"}}'
    (sigwrap.folder / "package.json").write_text(package)
    shutil.copy(programs / "server.js", sigwrap.folder)
    env = {"npm_config_update_notifier": "false", "npm_config_offline": "true"}
    terminal = sigwrap.on_terminal("--", "npm", "start", env=env)
    port = int(terminal.output.until(rb"port \d+\r\n").split()[1])
    with socket.create_connection(("127.0.0.1", port), PATIENCE_S) as client:
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert b"hello" in Reader(client.fileno()).rest()
    with Watch(tree(terminal.pid)) as watch:
        terminal.press("C")
        terminal.output.until(rb"closing")
        assert terminal.await_status() == INTERRUPTED
        assert watch.unharmed == []
        watch.await_ends()
    assert "escalated" not in sigwrap.interrupts()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), PATIENCE_S)
