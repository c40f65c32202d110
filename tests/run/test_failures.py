"""An error of sigwrap's own denies the request that it came with, and the run goes on."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sigwrap.start import own_files
from tests.support.harness import Sigwrap
from tests.support.policies import policy
from tests.support.waiting import PATIENCE_S

pytestmark = pytest.mark.tier("ci")

PROGRAMS = Path(__file__).parent / "programs"
ROUNDS = 60


def run_short_of_memory(
    sigwrap: Sigwrap, policy_name: str, *command: str, program: str = "runs_short_of_memory.py"
) -> subprocess.CompletedProcess[str]:
    line = [
        *(sys.executable, str(PROGRAMS / program)),
        *("--store", str(sigwrap.store), "--no-report", "-p", policy_name, "--", *command),
    ]
    return subprocess.run(
        line, env=sigwrap.env, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


@pytest.mark.fault(
    "missing resources",
    "no memory to decide a call",
    sees="that call is denied",
    keeps="`mediation_failed`",
)
def test_an_exec_that_was_put_off_is_denied_where_it_cannot_be_looked_at(sigwrap: Sigwrap) -> None:
    """The requests of two threads of one process come at once, and one that is redirected takes a
    while: some of the others have to wait for it."""
    files = [sigwrap.folder / "no-program", sigwrap.folder / "too-much"]
    for file in files:
        file.write_bytes(b"\0")
        file.chmod(0o755)
    rule = f"commands: [no-program], decision: redirect, redirect_to: {{command: {files[0]}}}"
    rules = f"\n  - {{name: again, {rule}}}\n"
    line = (sys.executable, str(PROGRAMS / "execs_in_threads.py"), str(ROUNDS))
    done = run_short_of_memory(sigwrap, policy(sigwrap.folder, rules), *line, *map(str, files))
    assert (done.returncode, done.stdout) == (0, "EACCES EPERM\n"), done.stderr
    failures = sigwrap.sealed_events("mediation_failed")
    assert len(failures) == ROUNDS
    assert {each.payload["error"] for each in failures} == {"MemoryError: "}


def test_an_exec_whose_facts_cannot_be_gathered_leaves_no_descriptor_open(sigwrap: Sigwrap) -> None:
    program = str(shutil.copy("/bin/true", sigwrap.folder / "too-crowded"))
    line = (sys.executable, str(PROGRAMS / "execs_in_threads.py"), str(ROUNDS), program)
    done = run_short_of_memory(sigwrap, "agent-observe", *line)
    assert (done.returncode, done.stdout) == (0, "EPERM\n"), done.stderr
    failures = sigwrap.sealed_events("mediation_failed")
    assert len(failures) == ROUNDS
    assert len({each.payload["error"] for each in failures}) == 1


@pytest.mark.fault(
    "missing resources",
    "no memory to verify an exec",
    sees="that process is killed (137)",
    keeps="`mediation_failed`",
)
def test_of_an_error_at_an_exec_stop_one_process_ends(sigwrap: Sigwrap) -> None:
    program = shutil.copy("/bin/true", sigwrap.folder / "too-late")
    done = run_short_of_memory(
        sigwrap, "agent-observe", "sh", "-c", f"{program}; echo $?; exec true"
    )
    assert (done.returncode, done.stdout) == (0, "137\n"), done.stderr
    (failure,) = sigwrap.sealed_events("mediation_failed")
    assert (failure.payload["error"], failure.payload["answered"]) == ("MemoryError: ", True)


def test_own_files_that_cannot_be_checked_count_as_changed(sigwrap: Sigwrap) -> None:
    line = ("sh", "-c", "exit 3")
    done = run_short_of_memory(sigwrap, "agent-observe", *line, program="cannot_check_itself.py")
    assert done.returncode == 3, done.stderr
    assert "can't check sigwrap's own files: MemoryError" in done.stderr
    (changed,) = sigwrap.sealed_events("own_files_changed")
    assert changed.payload["files"] == [own_files.PACKAGE]
