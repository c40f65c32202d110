"""On a machine whose calls sigwrap doesn't know, or where it was only emulated, it says so."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.harness import IS_BINARY, REFUSED, Sigwrap

# But for the numbers of calls: those are of the machine that the test runs on.
RUN = """
from sigwrap import machine
machine.IS_X86_64, machine.PLATFORM = False, "riscv64-linux-gnu"
from sigwrap.__main__ import main
main()
"""
# As Python is there.
ASK = """
import sys
sys.implementation._multiarch = "aarch64-linux-gnu"
from sigwrap.doctor import trials
from sigwrap.errors import NoInterception
from sigwrap.kernel.seccomp import demand_known_calls
try:
    demand_known_calls()
except NoInterception as refusal:
    print(refusal)
print(*trials._machine()[1:3], sep="; ")
"""
IS_PACKAGE = pytest.mark.skipif(IS_BINARY, reason="about the package")


@IS_PACKAGE
def test_nothing_runs_there_unless_best_effort_is_asked_for(sigwrap: Sigwrap) -> None:
    elsewhere = (sys.executable, "-I", "-c", RUN)
    done = sigwrap.native(*elsewhere, "--", "touch", "ran")
    (said,) = [each for each in done.stderr.decode().splitlines() if "riscv64" in each]
    assert said == (
        "sigwrap: only x86_64 and aarch64 are supported, and this machine is "
        "riscv64-linux-gnu (--best-effort runs the command without interception)"
    )
    assert (done.returncode, done.stdout) == (REFUSED, b"")
    assert not (sigwrap.folder / "ran").exists()
    done = sigwrap.native(*elsewhere, "--best-effort", "-p", "agent-observe", "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (0, b"ran\n")


@IS_PACKAGE
def test_where_it_was_tried_in_an_emulator_alone_one_has_to_say_that_one_wants_it() -> None:
    def asked(**variables: str) -> list[str]:
        done = subprocess.run(
            (sys.executable, "-I", "-c", ASK),
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.splitlines()

    for of_them in ({}, {"SIGWRAP_UNTRIED": "0"}, {"SIGWRAP_UNTRIED": ""}):
        assert asked(**of_them) == [
            "aarch64-linux-gnu is tested only in an emulator (SIGWRAP_UNTRIED=1 runs it anyway; "
            "--best-effort runs the command without interception)",
            "aarch64-linux-gnu is tested only in an emulator; untried",
        ]
    assert asked(SIGWRAP_UNTRIED="1") == [
        "aarch64-linux-gnu, and SIGWRAP_UNTRIED is set; being tried"
    ]
