"""What a person reads who has interrupted, where the run doesn't end within a second."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from tests.support.harness import INTERRUPTED, PYTHON, Sigwrap
from tests.support.processes import await_key_taken
from tests.support.terminal import Terminal

NAME = Path(PYTHON[0]).name.encode()[:15]


def _stubborn(sigwrap: Sigwrap, programs: Path, grace: str, setup: str) -> Terminal:
    line = [*PYTHON, str(programs / "stubborn.py")]
    text = f'{setup}; exec "$@"'
    return sigwrap.ready_on_terminal("--grace", grace, "--", "sh", "-c", text, "sh", *line)


@pytest.mark.parametrize("modes", ["opost", "-opost"])
def test_it_says_for_whom_how_long_and_what_the_key_does_now(
    as_user: Sigwrap, programs: Path, modes: str
) -> None:
    """In whole lines, whatever the terminal makes of their ends."""
    terminal = _stubborn(as_user, programs, "500", f"stty {modes}")
    terminal.press("C")
    whom = rb"%s \(pid %d\)" % (re.escape(NAME), as_user.command_pid())
    terminal.output.until(
        rb"sigwrap: interrupted: waiting up to 4\d\d s for %s to end or show a prompt; "
        rb"Ctrl\+C again kills\r\n" % whom
    )
    await_key_taken(terminal.pid)
    terminal.press("C")
    assert terminal.await_status() == INTERRUPTED
    assert as_user.interrupts() == ["received", "escalated"]


@pytest.mark.parametrize("before", ["stty -isig", "trap '' INT"])
def test_a_key_that_is_none_or_ignored_is_not_promised(
    sigwrap: Sigwrap, programs: Path, before: str
) -> None:
    line = sigwrap.line("--grace", "500", "--", *PYTHON, str(programs / "stubborn.py"))
    terminal = sigwrap.terminal_for(["sh", "-c", f'{before}; exec "$@"', "sh", *line])
    terminal.output.until(rb"ready")
    sigwrap.await_reading()
    os.kill(terminal.pid, signal.SIGTERM)
    terminal.output.until(rb"s for %s \(pid \d+\) to end; another SIGTERM kills" % re.escape(NAME))
    os.kill(terminal.pid, signal.SIGTERM)
    assert terminal.await_status() == INTERRUPTED
    assert sigwrap.interrupts() == ["received", "forwarded", "escalated"]


def test_a_stopped_terminal_holds_up_nothing(sigwrap: Sigwrap, programs: Path) -> None:
    terminal = _stubborn(sigwrap, programs, "1.2", "true")
    terminal.press("S")
    os.kill(terminal.pid, signal.SIGTERM)  # a Ctrl+C would let the output go on
    assert terminal.await_status() == INTERRUPTED
    assert sigwrap.interrupts() == ["received", "forwarded", "escalated"]


def test_what_is_no_terminal_gets_no_such_line(sigwrap: Sigwrap, programs: Path) -> None:
    line = sigwrap.line("--grace", "1.2", "--", *PYTHON, str(programs / "stubborn.py"))
    terminal = sigwrap.terminal_for(["sh", "-c", 'exec "$@" 2> errors', "sh", *line])
    terminal.output.until(rb"ready")
    sigwrap.await_reading()
    terminal.press("C")
    assert terminal.await_status() == INTERRUPTED
    assert (sigwrap.folder / "errors").read_bytes() == b""
