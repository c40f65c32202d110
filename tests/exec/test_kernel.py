"""Where the kernel has its own say: first lines, threads, signals, tracers, what it refuses."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from tests.support.harness import PYTHON, Sigwrap
from tests.support.policies import policy
from tests.support.programs import script

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


def test_what_it_refuses_is_the_same_as_without_sigwrap(
    as_user: Sigwrap, compiled: Path, programs: Path
) -> None:
    """The caller lives on with the same errno, and the log says no more than what happened."""
    native_folder, folder = as_user.folder / "native", as_user.folder / "here"
    name = policy(as_user.folder, ALLOW)
    line = (*PYTHON, str(programs / "refused.py"), str(compiled / "first"))
    for each in (native_folder, folder):
        as_user.native("mkdir", str(each))
    native = as_user.native(*line, cwd=native_folder)
    assert native.returncode == 0, native.stderr
    done = as_user.run("-p", name, "--no-report", "--", *line, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr == native.stderr == b""
    outcomes = native.stdout.splitlines()
    assert done.stdout.splitlines() == outcomes
    assert outcomes[-1] == b"it still works: 0"

    refused = [each for each in outcomes if each.endswith(b": 7")]
    assert len(refused) > 40
    events = as_user.sealed_events("exec_allowed", "exec_failed", "process_exited")
    by_process = Counter((event.pid, event.type) for event in events)
    for event in events:
        if event.type == "process_exited" and event.payload["exit_code"] == 7:
            # What was let through, and did not happen, is taken back.
            let_through = by_process[event.pid, "exec_allowed"]
            assert let_through == by_process[event.pid, "exec_failed"]
            assert event.payload["comm"].startswith("python")
    assert not as_user.sealed_events("exec_verification_failed")
