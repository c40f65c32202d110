"""On a machine whose calls sigwrap doesn't know, it says so."""

from __future__ import annotations

import sys

import pytest

from tests.support.harness import IS_BINARY, REFUSED, Sigwrap

# As Python is there.
START = """
import sys
sys.implementation._multiarch = "aarch64-linux-gnu"
from sigwrap.__main__ import main
main()
"""


@pytest.mark.skipif(IS_BINARY, reason="about the package")
def test_nothing_runs_there_unless_best_effort_is_asked_for(sigwrap: Sigwrap) -> None:
    line = (sys.executable, "-I", "-c", START)
    done = sigwrap.native(*line, "--", "touch", "ran")
    (said,) = [each for each in done.stderr.decode().splitlines() if "aarch64" in each]
    assert said == (
        "sigwrap: it knows the system calls of x86_64 only, and this is aarch64-linux-gnu "
        "(--best-effort runs the command without interception)"
    )
    assert (done.returncode, done.stdout) == (REFUSED, b"")
    assert not (sigwrap.folder / "ran").exists()
    done = sigwrap.native(*line, "--best-effort", "-p", "agent-observe", "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (0, b"ran\n")


def test_what_uname_says_is_no_reason(sigwrap: Sigwrap) -> None:
    done = sigwrap.native("setarch", "i686", *sigwrap.line("--", "echo", "ran"))
    assert (done.returncode, done.stdout) == (0, b"ran\n")
