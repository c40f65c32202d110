"""Execs that can't be verified, or not even be read: denied, or let through with an event that says
so and under rules that may forbid it."""

from __future__ import annotations

import os
import shutil
import signal
import time
from contextlib import suppress
from pathlib import Path

from tests.support.harness import PYTHON, Sigwrap
from tests.support.policies import TRACING, policy
from tests.support.waiting import PATIENCE_S

ALLOW = " []\n"


def _is_root(subject: Sigwrap) -> bool:
    return subject.user is None and os.getuid() == 0


def _first(compiled: Path, folder: Path, name: str, mode: int) -> str:
    shutil.copy(compiled / "first", folder / name)
    (folder / name).chmod(mode)
    return str(folder / name)


def test_a_caller_that_is_not_dumpable(as_user: Sigwrap, compiled: Path, programs: Path) -> None:
    """Root may look into it. Nobody else may, so what it asks for isn't known, and is denied.
    Nor is its standard error to be had then: the line goes to sigwrap's."""
    program = _first(compiled, as_user.folder, "program", 0o755)
    line = (*PYTHON, str(programs / "not_dumpable.py"), program, "x")
    done = as_user.run("-p", policy(as_user.folder, ALLOW), "--no-report", "--", *line)
    if _is_root(as_user):
        assert (done.returncode, done.stdout) == (0, b"program x\n")
        assert as_user.sealed_events("exec_allowed")[-1].payload["verified"] is True
    else:
        assert (done.returncode, done.stdout) == (7, b"13\n")
        assert done.stderr.startswith(b"sigwrap: denied: execve by python3")
        why = b": sigwrap may not read the caller"
        assert why in done.stderr and done.stderr.count(b"\n") == 1
        (exited,) = as_user.sealed_events("process_exited")
        assert exited.payload["exit_code"] == 7
        (event,) = as_user.sealed_events("exec_denied")
        assert event.payload["rule_name"] == "builtin:unreadable"
        assert "sigwrap may not read the caller" in event.payload["reason"]


def test_a_program_that_may_not_be_read(as_user: Sigwrap, compiled: Path) -> None:
    """What it was given can't be compared, so a thread may have written other variables."""
    program = _first(compiled, as_user.folder, "program", 0o711)
    done = as_user.run("-p", policy(as_user.folder, ALLOW), "--", "sh", "-c", f"{program} x; :")
    assert (done.returncode, done.stdout) == (0, b"program x\n")
    payload = as_user.sealed_events("exec_allowed")[-1].payload
    verified = _is_root(as_user)
    assert (payload["verified"], payload["traced"]) == (verified, not verified)

    for condition in ("traced", "loads_code"):
        rules = f"\n  - {{name: no, commands: [program], {condition}: true, decision: deny}}\n"
        line = ("-p", policy(as_user.folder, rules), "--", "sh", "-c", f"{program} x; echo $?")
        done = as_user.run(*line)
        assert done.stdout == (b"program x\n0\n" if verified else b"126\n"), condition


def test_the_interpreter_of_a_script_that_may_not_be_read(as_user: Sigwrap, compiled: Path) -> None:
    """Its first line can't be judged, but what it loads can be seen."""
    bad = _first(compiled, as_user.folder, "bad", 0o755)
    (as_user.folder / "script").write_text(f"#!{bad} argument\n")
    (as_user.folder / "script").chmod(0o711)
    rules = "\n  - {name: no, commands: [bad], decision: deny}\n"
    line = ("-p", policy(as_user.folder, rules), "--", "sh", "-c", "./script; echo $?")
    done = as_user.run(*line)
    assert b"bad" not in done.stdout
    event = "exec_denied" if _is_root(as_user) else "exec_verification_failed"
    assert len(as_user.sealed_events(event)) == 1


def test_a_caller_that_is_traced_by_its_parent(
    as_user: Sigwrap, compiled: Path, programs: Path
) -> None:
    program = _first(compiled, as_user.folder, "program", 0o755)
    traced = (*PYTHON, str(programs / "traced_by_its_parent.py"), program, "x")
    done = as_user.run("-p", policy(as_user.folder, ALLOW, TRACING), "--", *traced)
    assert (done.returncode, done.stdout) == (0, b"program x\n"), done.stderr
    payload = as_user.sealed_events("exec_allowed")[-1].payload
    assert (payload["verified"], payload["traced"]) == (True, True)


def test_who_is_killed_at_its_exec_was_not_denied_it(as_user: Sigwrap, programs: Path) -> None:
    """From outside, a bit later each time: nothing can be read of it any more."""
    process = as_user.start("--", *PYTHON, str(programs / "says_who_execs.py"))
    assert process.stdout is not None
    for number, line in enumerate(process.stdout):
        kills_at = time.perf_counter() + number % 300 * 3e-6
        while time.perf_counter() < kills_at:
            pass
        with suppress(ProcessLookupError):
            os.kill(int(line), signal.SIGKILL)
    _, said = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, said) == (0, b"")
    assert as_user.sealed_events("exec_denied", "exec_verification_failed") == []
