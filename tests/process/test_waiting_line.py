"""What a person reads who has interrupted, where the run doesn't end within a second."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from tests.support.harness import INTERRUPTED, PYTHON, Sigwrap
from tests.support.processes import await_key_taken
from tests.support.programs import needs
from tests.support.terminal import Terminal

NAME = Path(PYTHON[0]).name.encode()[:15]


def _stubborn(sigwrap: Sigwrap, programs: Path, grace: str, setup: str) -> Terminal:
    line = [*PYTHON, str(programs / "stubborn.py")]
    text = f'{setup}; exec "$@"'
    return sigwrap.ready_on_terminal("--grace", grace, "--", "sh", "-c", text, "sh", *line)


def test_it_says_for_whom_how_long_and_what_the_key_does_now(
    as_user: Sigwrap, programs: Path
) -> None:
    line = [*PYTHON, str(programs / "stubborn.py")]
    terminal = as_user.ready_on_terminal("--grace", "500", "--", *line)
    terminal.press("C")
    whom = rb"%s \(pid %d\)" % (re.escape(NAME), as_user.command_pid())
    terminal.output.until(
        rb"sigwrap: interrupted: waiting up to 4\d\d s for %s to end or come to a prompt; "
        rb"Ctrl\+C again kills\r\n" % whom
    )
    await_key_taken(terminal.pid)
    terminal.press("C")
    assert terminal.await_status() == INTERRUPTED
    assert as_user.interrupts() == ["received", "escalated"]


def test_a_key_that_is_none_is_not_promised(sigwrap: Sigwrap, programs: Path) -> None:
    terminal = _stubborn(sigwrap, programs, "500", "stty -isig")
    os.kill(terminal.pid, signal.SIGTERM)
    terminal.output.until(rb"s for %s \(pid \d+\) to end; another SIGTERM kills" % re.escape(NAME))
    os.kill(terminal.pid, signal.SIGTERM)
    assert terminal.await_status() == INTERRUPTED
    assert sigwrap.interrupts().count("escalated") == 1


def test_a_key_that_is_ignored_is_not_promised(sigwrap: Sigwrap, programs: Path) -> None:
    line = sigwrap.line("--grace", "500", "--", *PYTHON, str(programs / "stubborn.py"))
    terminal = sigwrap.terminal_for(["sh", "-c", "trap '' INT; exec \"$@\"", "sh", *line])
    terminal.output.until(rb"ready")
    sigwrap.await_reading()
    os.kill(terminal.pid, signal.SIGTERM)
    terminal.output.until(rb"another SIGTERM kills")
    terminal.press("C")
    os.kill(terminal.pid, signal.SIGTERM)
    assert terminal.await_status() == INTERRUPTED
    assert sigwrap.interrupts() == ["received", "forwarded", "escalated"]


def test_a_terminal_in_raw_mode_gets_whole_line_ends(sigwrap: Sigwrap, programs: Path) -> None:
    terminal = _stubborn(sigwrap, programs, "500", "stty -opost")
    terminal.press("C")
    terminal.output.until(rb"Ctrl\+C again kills\r\n")
    await_key_taken(terminal.pid)
    terminal.press("C")
    assert terminal.await_status() == INTERRUPTED


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


@pytest.mark.tier("all")
@needs("gdb")
def test_the_quit_key_ends_a_debugger_that_ignores_it_and_says_so(sigwrap: Sigwrap) -> None:
    env = {"TERM": "xterm", "INPUTRC": "/dev/null"}
    terminal = sigwrap.on_terminal("-p", "agent-observe", "--", "gdb", "-q", "-nx", env=env)
    terminal.output.until(rb"\(gdb\) ")
    sigwrap.await_reading()
    terminal.press("\\")
    terminal.output.until(rb"waiting up to \d s for gdb \(pid \d+\) to end; Ctrl\+C kills\r\n")
    await_key_taken(terminal.pid)
    terminal.press("C")
    assert terminal.await_status() == INTERRUPTED
    assert sigwrap.interrupts() == ["received", "escalated"]
