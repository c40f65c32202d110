"""The terminal's other keys: suspending, resuming, and who gets them."""

from __future__ import annotations

import subprocess

import pytest

from tests.support.harness import EXECS, INTERRUPTED, PYTHON, Sigwrap
from tests.support.processes import children
from tests.support.waiting import PATIENCE_S, await_state, await_that, reader

EDITOR = "import os, signal; os.kill(0, signal.SIG{}); print('back')"
STARTED = ("sh", "-c", '"$@"; read x', "sh", *PYTHON, "-c")


@pytest.mark.parametrize(
    "command",
    [
        ("sh", "-c", "kill -STOP $$; echo back; read x"),
        (*STARTED, EDITOR.format("TSTP")),
        (*STARTED, EDITOR.format("STOP")),
    ],
    ids=["itself", "TSTP", "STOP"],
)
def test_a_command_that_stops_itself_or_its_group_is_a_stopped_job(
    as_user: Sigwrap, command: tuple[str, ...]
) -> None:
    """Editors and menus stop their group by SIGSTOP, which nobody handles: also who waits for them,
    which agent-default has nobody stop."""
    terminal = as_user.on_terminal("-p", "agent-default", "--", *command)
    terminal.await_stop()
    await_state(as_user.command_pid(), "T")
    terminal.continue_job()
    terminal.output.until(rb"back")
    terminal.press("D")
    assert terminal.await_status() == 1
    assert as_user.interrupts() == []
    assert as_user.events("signal_blocked") == []


def test_a_job_that_nobody_would_continue_is_not_stopped(as_user: Sigwrap) -> None:
    """As under `ssh -t`: no shell is above it. Ctrl+C would do nothing any more."""
    stopping = "import os, signal; os.kill(0, signal.SIGSTOP)"
    words = ("--grace", "1", "--", "sh", "-c", '"$@"; echo rest', "sh", *PYTHON, "-c")
    spawning = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))"
    line = [*PYTHON, "-c", spawning, *as_user.line(*words, stopping)]
    run = as_user.start_line(line, stdin=subprocess.PIPE)
    reader(run.stdout).until(rb"denied: SIGSTOP to \d+ \(sh\): .*\(rule agent")
    assert run.stdin is not None
    run.stdin.write(b"\x03")
    run.stdin.flush()
    assert run.wait(PATIENCE_S) == INTERRUPTED


@pytest.mark.promise("job control")
def test_suspend_fg_bg_and_kill_in_an_interactive_bash(as_user: Sigwrap) -> None:
    terminal = as_user.bash_on_terminal()
    words = " ".join(map(str, as_user.line("--", "cat")))
    terminal.type(f"{words}\n")
    terminal.output.until(rb"\n")
    as_user.await_event(*EXECS)
    terminal.type("one\n")
    terminal.output.until(rb"one\r\none\r\n")
    terminal.press("Z")
    terminal.output.until(rb"Stopped[^\n]*cat")
    terminal.output.until(rb"PROMPT> ")
    # The binary's outer process may stop before cat, which could still read what we type.
    await_state(as_user.command_pid(), "T")
    terminal.type("jobs\n")
    terminal.output.until(rb"\[1\]\+  Stopped[^\n]*cat")
    terminal.output.until(rb"PROMPT> ")
    terminal.bring_to_foreground("cat")
    terminal.type("two\n")
    terminal.output.until(rb"two\r\ntwo\r\n")
    terminal.press("Z")
    terminal.output.until(rb"PROMPT> ")
    await_state(as_user.command_pid(), "T")
    terminal.type("bg\n")  # cat reads the terminal, so it is stopped again at once
    terminal.output.until(rb"PROMPT> ")
    terminal.await_stopped_job("cat")
    terminal.bring_to_foreground("cat")
    terminal.type("four\n")
    terminal.output.until(rb"four\r\nfour\r\n")
    terminal.press("Z")
    terminal.output.until(rb"PROMPT> ")
    await_state(as_user.command_pid(), "T")
    terminal.type("kill %1\n")
    as_user.await_event("session_ended")
    await_that(lambda: children(terminal.pid) == [])  # else bash won't exit: it has a job
    (ended,) = as_user.sealed_events("session_ended")
    assert ended.payload["exit_status"] == INTERRUPTED
    terminal.type("exit\n")
    terminal.await_status()


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
