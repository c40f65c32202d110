"""Where the kernel has its own say: first lines, threads, signals, other tracers and roots."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.harness import PYTHON, Sigwrap
from tests.support.policies import policy
from tests.support.programs import needs, script

ALLOW = " []\n"


def test_first_lines_are_read_as_the_kernel_reads_them(as_user: Sigwrap, programs: Path) -> None:
    """Else a script would be killed for having loaded what nobody expected."""
    native = as_user.native(*PYTHON, str(programs / "first_lines.py"))
    line = ("-p", policy(as_user.folder, ALLOW), "--", *PYTHON, str(programs / "first_lines.py"))
    assert as_user.run(*line).stdout == native.stdout
    assert native.stdout.count(b"\n") == 20


def test_all_threads_exec_at_once(as_user: Sigwrap, compiled: Path) -> None:
    """One wins, the others die; no thread's exec can make the supervisor wait for another."""
    line = (str(compiled / "threads"), "/bin/true", "60")
    done = as_user.run("-p", policy(as_user.folder, ALLOW), "--", *line)
    assert (done.returncode, done.stdout) == (0, b"60\n")
    assert not as_user.sealed_events("exec_verification_failed")


@pytest.mark.parametrize("redirected", [False, True], ids=["verified", "redirected"])
def test_signals_while_it_execs(as_user: Sigwrap, compiled: Path, redirected: bool) -> None:
    """Handled, ignored, stopping and continuing ones: none is lost, no exec goes astray."""
    script(as_user.folder, "broken", "neither a script nor a program")
    shutil.copy(compiled / "mark", as_user.folder / "was")
    rules = "\n  - {name: r, commands: [was], decision: redirect, redirect_to: {command: 'true'}}\n"
    program = str(as_user.folder / "was") if redirected else "/bin/true"
    line = (str(compiled / "signalled"), program, str(as_user.folder / "broken"), "40")
    done = as_user.run("-p", policy(as_user.folder, rules), "--", *line)
    assert (done.returncode, done.stdout) == (0, b"right 40 wrong 0\n"), done
    assert not as_user.sealed_events("exec_verification_failed")


@needs("strace")
def test_a_program_under_strace(as_user: Sigwrap) -> None:
    """Its tracer is held in its place."""
    line = ("strace", "-f", "-o", "trace", "sh", "-c", "/bin/echo traced; true")
    done = as_user.run("-p", policy(as_user.folder, ALLOW), "--", *line)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"traced\n", b"")
    assert "execve" in (as_user.folder / "trace").read_text()
    events = {e.payload["argv"][0]: e.payload for e in as_user.sealed_events("exec_allowed")}
    assert (events["strace"]["traced"], events["strace"]["verified"]) == (False, True)
    assert (events["/bin/echo"]["traced"], events["/bin/echo"]["verified"]) == (True, True)
