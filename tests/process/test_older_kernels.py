"""What docs/platforms.md says about older kernels: an outer filter refuses the newer calls. `make
test-kernels` boots real ones."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.harness import PYTHON, REFUSED, Sigwrap
from tests.support.waiting import Reader

POLICY = """
version: 1
name: kernels
extends: agent-observe
command_rules:
  - {name: no-id, commands: [id], decision: deny, message: no ids here}
  - name: other
    commands: [uname]
    decision: redirect
    redirect_to: {command: echo, args: [in its place]}
  - name: broker
    commands: [date]
    decision: redirect
    redirect_to: {command: echo, args: [recorded], via: stub, record: true}
"""
TIMES = 4  # each may go another way, where the interrupt can break off the wait for the answer
JOB = (
    f"id || echo $?; {'uname; ' * TIMES} date; "
    "sleep 60 & kill -TERM $!; wait $!; echo $?; kill -INT $$"
)
# A shell would say on the same pipe that it failed.
SILENT = """
import os
try:
    os.execvp("id", ["id"])
except PermissionError:
    os._exit(5)
"""

RunOn = Callable[..., subprocess.CompletedProcess[bytes]]


@pytest.fixture
def run_on(as_user: Sigwrap, programs: Path) -> RunOn:
    policy = as_user.folder / "kernels.yaml"
    policy.write_text(POLICY)

    def run(
        version: str, *words: str, stderr: int = subprocess.PIPE
    ) -> subprocess.CompletedProcess[bytes]:
        older = [*PYTHON, str(programs / "older_kernel.py"), version]
        return as_user.native(*older, *as_user.line(*words), stderr=stderr)

    return run


def test_before_linux_5_6_nothing_runs_and_a_line_says_why(as_user: Sigwrap, run_on: RunOn) -> None:
    done = run_on("5.5", "-p", "kernels.yaml", "--", "touch", "ran")
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith(
        "sigwrap: the kernel refused openat2(2): Function not implemented (sigwrap needs Linux 5.6 "
    )
    assert "Linux 5.6" in line and "--best-effort" in line
    assert (done.returncode, done.stdout) == (REFUSED, b"")
    assert not (as_user.folder / "ran").exists()


@pytest.mark.parametrize("version", ["5.6", "6.1"])
def test_what_a_run_does_and_is_without(as_user: Sigwrap, run_on: RunOn, version: str) -> None:
    done = run_on(version, "-p", "kernels.yaml", "--", "sh", "-c", JOB)
    said = done.stderr.decode()
    assert "sigwrap: denied: id: no ids here (rule no-id, policy kernels)" in said
    assert done.returncode == 130
    records = version != "5.6"
    expected = ["126", *["in its place"] * TIMES, *["recorded"] * records, "143"]
    assert done.stdout.decode().splitlines() == expected
    (started,) = as_user.sealed_events("session_started")
    assert ("waits_through_signals" in started.payload["capabilities"]) == (version == "6.1")
    assert ("recording" in started.payload["capabilities"]) == records
    assert as_user.sealed_events("exec_denied")


def test_nobody_waits_for_a_full_pipe(as_user: Sigwrap, run_on: RunOn) -> None:
    """One that sigwrap may not open anew, where the pipe is of another user."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(writing, b"." * 4096)
    os.set_blocking(writing, True)
    done = run_on("6.1", "-p", "kernels.yaml", "--", *PYTHON, "-c", SILENT, stderr=writing)
    os.close(writing)
    assert done.returncode == 5
    assert b"denied" not in Reader(reading).rest()
    os.close(reading)
    assert as_user.sealed_events("exec_denied")
