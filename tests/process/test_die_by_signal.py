"""--die-by-signal: whoever waits for sigwrap sees the signal that ended the run."""

from __future__ import annotations

import os
import signal

import pytest

from tests.support.harness import INTERRUPTED, IS_BINARY, PYTHON, Sigwrap
from tests.support.programs import script


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGKILL", "SIGINT"])
def test_the_signal_that_command_died_of(as_user: Sigwrap, name: str) -> None:
    """sigwrap itself leaves no core where COMMAND would."""
    number = signal.Signals[name]
    text = f"ulimit -Sc 0; kill -{number:d} $$"
    line = [*as_user.as_user(), "sh", "-c", 'ulimit -Sc unlimited; exec "$@"', "sh"]
    done = as_user.start_line([*line, *as_user.line("--die-by-signal", "--", "sh", "-c", text)])
    _, status = os.waitpid(done.pid, 0)
    done.returncode = 0
    assert os.WIFSIGNALED(status)
    assert (os.WTERMSIG(status), os.WCOREDUMP(status)) == (number, False)
    assert list(as_user.folder.glob("core*")) == []
    (ended,) = as_user.sealed_events("session_ended")
    assert ended.payload["exit_status"] == 128 + number


DIES_OF_ANY = """
import ctypes, os, sys
number = int(sys.argv[1])
ctypes.CDLL(None).syscall(13, number, bytes(32), None, 8)  # rt_sigaction
os.kill(os.getpid(), number)
"""


def test_a_signal_that_the_c_library_keeps_to_itself(sigwrap: Sigwrap) -> None:
    """Make leaves both ignored, so COMMAND has to see to their default actions itself."""
    number = 32
    done = sigwrap.run("--die-by-signal", "--", *PYTHON, "-c", DIES_OF_ANY, str(number))
    # PyInstaller's bootloader can't die of it.
    assert (done.returncode, done.stderr) == (128 + number if IS_BINARY else -number, b"")


def test_a_status_stays_a_status(sigwrap: Sigwrap) -> None:
    assert sigwrap.run("--die-by-signal", "--", "sh", "-c", "exit 130").returncode == 130
    assert sigwrap.run("--die-by-signal", "--", "no-such-program").returncode == 127


@pytest.mark.parametrize("dies", [True, False])
def test_a_script_ends_at_the_key_or_goes_on(as_user: Sigwrap, dies: bool) -> None:
    """bash waits to see whether its child died of SIGINT."""
    option = ["--die-by-signal"] if dies else []
    words = as_user.line("--no-report", *option, "--", "sh", "-c", "echo ready; exec cat")
    line = " ".join(map(str, words[:-1]))
    path = script(as_user.folder, "script", f"{line} 'echo ready; exec cat'\necho next $?\n")
    terminal = as_user.terminal_for([*as_user.as_user(), "bash", path])
    terminal.output.until(rb"ready")
    as_user.await_reading()
    terminal.press("C")
    assert terminal.await_status() == (INTERRUPTED if dies else 0)
    assert terminal.output.rest().endswith(b"" if dies else b"next 130\r\n")
    assert (b"next" in terminal.output.seen) is not dies
