"""Ctrl+C at a prompt is the prompt's; --interrupt makes it somebody's always."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.support.harness import INTERRUPTED, PYTHON, Sigwrap
from tests.support.processes import await_key_taken
from tests.support.terminal import Terminal
from tests.support.waiting import await_that


def _taken_by(sigwrap: Sigwrap) -> list[str]:
    return [event.payload["taken_by"] for event in sigwrap.events("interrupt_received")]


def _reason(sigwrap: Sigwrap) -> str:
    reason: str = sigwrap.events("session_ended")[0].payload["reason"]
    return reason


def _at_prompt(sigwrap: Sigwrap, programs: Path, *options: str, kind: str = "") -> Terminal:
    command = [*PYTHON, str(programs / "prompt.py"), kind]
    terminal = sigwrap.ready_on_terminal(*options, "--", *command)
    terminal.output.until(rb"prompt")
    return terminal


def _await_keys_settled(sigwrap: Sigwrap, terminal: Terminal, count: int) -> None:
    """The terminal may have been seen in the moment in which it is in line mode: then the key is
    taken back."""
    await_key_taken(terminal.pid)

    def is_settled() -> bool:
        taken_by = _taken_by(sigwrap)
        withdrawn = len(sigwrap.events("interrupt_withdrawn"))
        return len(taken_by) == count and taken_by.count("sigwrap") == withdrawn

    await_that(is_settled)


def _press_a_key_that_is_taken_back(sigwrap: Sigwrap, terminal: Terminal) -> None:
    """And end at the prompt that comes back."""
    terminal.press("C")
    terminal.output.until(rb"interrupted")
    sigwrap.await_event("interrupt_received")
    terminal.type("\n")
    terminal.output.until(rb"prompt")
    sigwrap.await_event("interrupt_withdrawn")
    terminal.type("q")
    assert terminal.await_status() == 3
    assert sigwrap.interrupts() == ["received", "withdrawn"]


@pytest.mark.promise("ctrl+c")
def test_the_key_at_a_prompt_ends_a_line_and_not_the_run(as_user: Sigwrap, programs: Path) -> None:
    terminal = _at_prompt(as_user, programs)
    for count in (1, 2, 3):
        as_user.await_reading()
        terminal.press("C")
        terminal.output.until(rb"interrupted\r\nprompt")
        _await_keys_settled(as_user, terminal, count)
    terminal.type("q")
    assert terminal.await_status() == 3
    assert "escalated" not in as_user.interrupts()
    assert _reason(as_user) == "COMMAND ended"


def test_the_key_while_a_prompts_program_computes_is_taken_back(
    as_user: Sigwrap, programs: Path
) -> None:
    terminal = _at_prompt(as_user, programs, kind="waits")
    terminal.type("c")
    terminal.output.until(rb"computes")
    _press_a_key_that_is_taken_back(as_user, terminal)
    assert _taken_by(as_user) == ["sigwrap"]
    assert _reason(as_user) == "COMMAND ended"


def test_the_quit_key_ends_a_prompt(sigwrap: Sigwrap, programs: Path) -> None:
    terminal = _at_prompt(sigwrap, programs)
    terminal.press("\\")
    assert terminal.await_status() == INTERRUPTED
    assert _reason(sigwrap) == "interrupted"


def test_a_prompt_that_command_waits_for(sigwrap: Sigwrap, programs: Path) -> None:
    """In system(3), where it ignores the key."""
    prompt = " ".join(["exec", *PYTHON, str(programs / "prompt.py"), "pager"])
    text = f"import os; os._exit(os.system({prompt!r}) >> 8)"
    terminal = sigwrap.on_terminal("--", *PYTHON, "-c", text)
    terminal.output.until(rb"prompt")
    sigwrap.await_reading()
    terminal.press("C")
    terminal.output.until(rb"interrupted\r\nprompt")
    _await_keys_settled(sigwrap, terminal, 1)
    assert _taken_by(sigwrap) == ["command"]
    terminal.type("q")
    assert terminal.await_status() == 3


def test_the_key_is_the_programs_that_a_prompt_waits_for(as_user: Sigwrap, programs: Path) -> None:
    """In system(3) as well, and the terminal is in line mode."""
    terminal = as_user.ready_on_terminal("--", *PYTHON, str(programs / "waits_in_system.py"))
    _press_a_key_that_is_taken_back(as_user, terminal)
    assert _reason(as_user) == "COMMAND ended"


@pytest.mark.parametrize("before", [":", "stty -icanon"])
def test_who_hangs_when_interrupted_is_killed_by_the_second_key(
    sigwrap: Sigwrap, programs: Path, before: str
) -> None:
    """A terminal that was not in line mode before makes no prompt."""
    hangs = [*PYTHON, str(programs / "hangs_at_interrupt.py")]
    line = sigwrap.line("--grace", "1000", "--", *hangs)
    terminal = sigwrap.terminal_for(["sh", "-c", f'{before}; exec "$@"', "sh", *line])
    terminal.output.until(rb"ready")
    sigwrap.await_reading()
    terminal.press("C")
    terminal.output.until(rb"interrupted")
    await_key_taken(terminal.pid)
    terminal.press("C")
    assert terminal.await_status() == INTERRUPTED
    assert sigwrap.interrupts() == ["received", "escalated"]


def test_the_key_can_end_the_run_at_a_prompt_too(sigwrap: Sigwrap, programs: Path) -> None:
    terminal = _at_prompt(sigwrap, programs, "--interrupt", "sigwrap", "--grace", "0.5")
    terminal.press("C")
    assert terminal.await_status() == INTERRUPTED
    assert _taken_by(sigwrap) == ["sigwrap"]


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
