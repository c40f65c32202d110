"""Execs that the kernel refuses: the caller lives on with the errno that it would have got without
sigwrap, sigwrap goes on, and the log says no more than what happened."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.support.harness import PYTHON, Sigwrap
from tests.support.policies import policy

ALLOW = " []\n"


def _outcomes(stdout: bytes) -> list[str]:
    return stdout.decode().splitlines()


def test_the_same_as_without_sigwrap(as_user: Sigwrap, compiled: Path, programs: Path) -> None:
    native_folder, folder = as_user.folder / "native", as_user.folder / "here"
    name = policy(as_user.folder, ALLOW)
    line = (*PYTHON, str(programs / "refused.py"), str(compiled / "first"))
    for each in (native_folder, folder):
        as_user.native("mkdir", str(each))
    native = as_user.native(*line, cwd=native_folder)
    assert native.returncode == 0, native.stderr
    done = as_user.run("-p", name, "--", *line, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stderr == native.stderr == b""
    assert _outcomes(done.stdout) == _outcomes(native.stdout)
    assert _outcomes(native.stdout)[-1] == "it still works: 0"

    refused = [each for each in _outcomes(native.stdout) if each.endswith(": 7")]
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


@pytest.mark.parametrize("how", ["redirected", "brokered"])
def test_a_replacement_that_the_kernel_refuses(as_user: Sigwrap, compiled: Path, how: str) -> None:
    """It is the log that says why; the caller may go on and exec something else."""
    broken = as_user.folder / "broken"
    broken.write_text("neither a script nor a program")
    broken.chmod(0o755)
    via = "exec" if how == "redirected" else "stub"
    rules = f"""
  - {{name: r, commands: [ls], decision: redirect, redirect_to: {{command: {broken}, via: {via}}}}}
"""
    text = f"{compiled}/call execve /bin/ls; echo $?; /bin/echo after"
    done = as_user.run("-p", policy(as_user.folder, rules), "--", "sh", "-c", text)
    assert done.stdout == b"errno 13\n77\nafter\n"
    (event,) = as_user.sealed_events("exec_failed")
    payload = event.payload
    assert (payload["path"], payload["error"]) == (str(broken), "ENOEXEC")
