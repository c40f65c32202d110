"""The terminal's other keys: suspending, resuming, and who gets them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.support.harness import EXECS, INTERRUPTED, PYTHON, Sigwrap
from tests.support.processes import children
from tests.support.terminal import Terminal
from tests.support.waiting import PATIENCE_S, await_state, await_that, reader


@pytest.mark.promise("job control")
def test_suspend_and_resume_as_a_job(sigwrap: Sigwrap) -> None:
    text = 'echo ready; while read x; do echo "got $x"; done'
    terminal = sigwrap.ready_on_terminal("--", "bash", "-c", text)
    command = sigwrap.command_pid()
    for number in range(3):
        terminal.press("Z")
        terminal.await_stop()
        await_state(command, "T")
        terminal.continue_job()
        terminal.type(f"line {number}\n")
        terminal.output.until(b"got line %d" % number)
    terminal.press("D")
    assert terminal.await_status() == 0
    assert "received" not in sigwrap.interrupts()


def _stops_and_comes_back(sigwrap: Sigwrap, terminal: Terminal) -> None:
    terminal.await_stop()
    await_state(sigwrap.command_pid(), "T")
    terminal.continue_job()
    terminal.output.until(rb"back")
    terminal.press("D")
    assert terminal.await_status() == 1


@pytest.mark.parametrize("whom", ["itself", "its group"])
def test_a_command_that_stops_itself_is_a_stopped_job(as_user: Sigwrap, whom: str) -> None:
    """Editors and menus stop their group by SIGSTOP, which nobody handles."""
    pid = "$$" if whom == "itself" else "0"
    terminal = as_user.on_terminal("--", "sh", "-c", f"kill -STOP {pid}; echo back; read x")
    _stops_and_comes_back(as_user, terminal)
    assert as_user.interrupts() == []


@pytest.mark.parametrize("number", ["TSTP", "STOP"])
def test_an_editor_that_somebody_started_stops_the_whole_job(as_user: Sigwrap, number: str) -> None:
    """Also who waits for it, which agent-default has nobody stop."""
    editor = f"import os, signal; os.kill(0, signal.SIG{number}); print('back')"
    words = ("-p", "agent-default", "--", "sh", "-c", '"$@"; read x', "sh", *PYTHON, "-c", editor)
    terminal = as_user.on_terminal(*words)
    _stops_and_comes_back(as_user, terminal)
    assert as_user.events("signal_blocked") == []


def test_a_job_that_nobody_would_continue_is_not_stopped(as_user: Sigwrap) -> None:
    """As under `ssh -t`: no shell is above it. Ctrl+C would do nothing any more."""
    stopping = "import os, signal; os.kill(0, signal.SIGSTOP)"
    words = ("--grace", "1", "--", "sh", "-c", '"$@"; echo rest', "sh", *PYTHON, "-c")
    spawning = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"
    line = [*PYTHON, "-c", spawning, *as_user.line(*words, stopping)]
    run = as_user.start_line(line, stdin=subprocess.PIPE)
    reader(run.stdout).until(rb"SIGSTOP to \d+ \(sh\): denied by rule agent")
    assert run.stdin is not None
    run.stdin.write(b"\x03")
    run.stdin.flush()
    assert run.wait(PATIENCE_S) == INTERRUPTED


def test_suspend_and_fg_in_an_interactive_bash(as_user: Sigwrap) -> None:
    terminal = as_user.bash_on_terminal()
    words = " ".join(map(str, as_user.line("--", "cat")))
    terminal.type(f"{words}\n")
    terminal.output.until(rb"\n")
    as_user.await_event(*EXECS)
    terminal.type("one\n")
    terminal.output.until(rb"one\r\none\r\n")
    for word in ("two", "three"):
        terminal.press("Z")
        terminal.output.until(rb"Stopped[^\n]*cat")
        terminal.output.until(rb"PROMPT> ")
        # The binary's outer process may stop before cat, which could still read what we type.
        await_state(as_user.command_pid(), "T")
        terminal.type("jobs\n")
        terminal.output.until(rb"\[1\]\+  Stopped[^\n]*cat")
        terminal.output.until(rb"PROMPT> ")
        terminal.bring_to_foreground("cat")
        terminal.type(f"{word}\n")
        terminal.output.until(b"%b\r\n%b\r\n" % (word.encode(), word.encode()))
    terminal.press("Z")
    terminal.output.until(rb"PROMPT> ")
    await_state(as_user.command_pid(), "T")
    terminal.type("bg\n")  # cat reads the terminal, so it is stopped again at once
    terminal.output.until(rb"PROMPT> ")
    terminal.await_stopped_job("cat")
    terminal.bring_to_foreground("cat")
    terminal.type("four\n")
    terminal.output.until(rb"four\r\nfour\r\n")
    terminal.press("C")
    terminal.output.until(rb"PROMPT> ")
    terminal.type("echo status $?\n")
    terminal.output.until(rb"status 130\r\n")
    terminal.type("exit 0\n")
    assert terminal.await_status() == 0


def test_kill_of_a_stopped_job_from_bash(sigwrap: Sigwrap) -> None:
    terminal = sigwrap.bash_on_terminal()
    terminal.type(" ".join(map(str, sigwrap.line("--", "cat"))) + "\n")
    sigwrap.await_event(*EXECS)
    terminal.press("Z")
    terminal.output.until(rb"Stopped")
    terminal.output.until(rb"PROMPT> ")
    await_state(sigwrap.command_pid(), "T")
    terminal.type("kill %1\n")
    sigwrap.await_event("session_ended")
    await_that(lambda: children(terminal.pid) == [])  # else bash won't exit: it has a job
    (ended,) = sigwrap.sealed_events("session_ended")
    assert ended.payload["exit_status"] == INTERRUPTED
    terminal.type("exit\n")
    terminal.await_status()


@pytest.mark.tier("all")
def test_a_new_size_reaches_command(sigwrap: Sigwrap, programs: Path) -> None:
    terminal = sigwrap.ready_on_terminal("--", *PYTHON, str(programs / "says_its_size.py"))
    terminal.resize(33, 77)
    terminal.output.until(rb"size 77 33")
    terminal.resize(44, 111)
    terminal.output.until(rb"size 111 44")
    terminal.type("\n")
    assert terminal.await_status() == 0


def test_jobs_of_a_bash_after_something_was_mounted(as_user: Sigwrap) -> None:
    """From then on the loop reads nobody's memory itself, and which group gets the terminal stands
    in memory. That the mount fails doesn't matter."""
    mounts = "import ctypes; ctypes.CDLL(None).mount(b'x', b'/nowhere', b'x', 0, None)"
    text = f'set -m; {" ".join(PYTHON)} -c "{mounts}"; cat; echo ended $?'
    terminal = as_user.on_terminal("--", "bash", "--norc", "-ic", text)
    terminal.type("one\n")
    terminal.output.until(rb"one\r\none\r\n")
    terminal.press("D")
    terminal.output.until(rb"ended 0\r\n")
    assert terminal.await_status() == 0
