"""Ctrl+C at a prompt is the prompt's; --interrupt makes it somebody's always."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.support.harness import PYTHON, Sigwrap
from tests.support.processes import await_key_taken
from tests.support.terminal import Terminal
from tests.support.waiting import await_that


def _taken_by(sigwrap: Sigwrap) -> list[str]:
    return [event.payload["taken_by"] for event in sigwrap.events("interrupt_received")]


def _await_keys_settled(sigwrap: Sigwrap, terminal: Terminal, count: int) -> None:
    """The terminal may have been seen in the moment in which it is in line mode: then the key is
    taken back."""
    await_key_taken(terminal.pid)

    def is_settled() -> bool:
        taken_by = _taken_by(sigwrap)
        withdrawn = len(sigwrap.events("interrupt_withdrawn"))
        return len(taken_by) == count and taken_by.count("sigwrap") == withdrawn

    await_that(is_settled)


@pytest.mark.promise("ctrl+c")
def test_the_key_at_a_prompt_ends_a_line_and_not_the_run(as_user: Sigwrap, programs: Path) -> None:
    terminal = as_user.ready_on_terminal("--", *PYTHON, str(programs / "prompt.py"))
    terminal.output.until(rb"prompt")
    for count in (1, 2, 3):
        as_user.await_reading()
        terminal.press("C")
        terminal.output.until(rb"interrupted\r\nprompt")
        _await_keys_settled(as_user, terminal, count)
    terminal.type("q")
    assert terminal.await_status() == 3
    assert "escalated" not in as_user.interrupts()
    assert as_user.events("session_ended")[0].payload["reason"] == "the command ended"


def test_the_key_while_a_prompts_program_computes_is_taken_back(
    as_user: Sigwrap, programs: Path
) -> None:
    terminal = as_user.ready_on_terminal("--", *PYTHON, str(programs / "prompt.py"), "waits")
    terminal.output.until(rb"prompt")
    terminal.type("c")
    terminal.output.until(rb"computes")
    terminal.press("C")
    terminal.output.until(rb"interrupted")
    as_user.await_event("interrupt_received")
    terminal.type("\n")
    terminal.output.until(rb"prompt")
    as_user.await_event("interrupt_withdrawn")
    terminal.type("q")
    assert terminal.await_status() == 3
    assert as_user.interrupts() == ["received", "withdrawn"]
    assert _taken_by(as_user) == ["sigwrap"]


def test_the_key_can_be_commands_always(sigwrap: Sigwrap, programs: Path) -> None:
    terminal = sigwrap.ready_on_terminal(
        "--interrupt", "command", "--", *PYTHON, str(programs / "says_interrupts.py")
    )
    os.kill(terminal.pid, signal.SIGINT)
    terminal.output.until(rb"got")
    sigwrap.await_reading()
    terminal.press("C")
    terminal.output.until(rb"got")
    await_that(lambda: len(_taken_by(sigwrap)) == 2)
    terminal.type("\n")
    assert terminal.await_status() == 0
    assert sigwrap.interrupts() == ["received", "forwarded", "received"]
    assert _taken_by(sigwrap) == ["command", "command"]
