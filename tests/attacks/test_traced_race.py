"""Whom somebody of the session traces can't be held at its exec. Its tracer is, and what was loaded
is compared before its first instruction; who would run on after an exec may not make one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.harness import Sigwrap
from tests.support.policies import policy
from tests.support.waiting import PATIENCE_S

ROUNDS = 3
AT_MOST_S = 10
RULES = """
  - {name: no-bad, commands: [bad], decision: deny}
  - {name: no-push, commands: ["*"], args_patterns: [^push$], decision: deny}
"""


@pytest.mark.parametrize(
    "how",
    [
        "path",
        "word",
        "path seized",
        "word i386",
        "word seized i386",
        "path ends",
        "path seized ends",
        "path seized threads leader",
        "path seized threads other",
    ],
)
def test_what_a_tracer_flips_never_runs(
    as_user: Sigwrap, compiled: Path, first: Path, how: str
) -> None:
    for name in ("good", "bad"):
        shutil.copy(first, as_user.folder / name)
    names = (str(as_user.folder / "good"), str(as_user.folder / "bad"))
    path = policy(as_user.folder, RULES)
    line = ("-p", path, "--", str(compiled / "traced_race"), how, *names, str(PATIENCE_S))
    done = as_user.run(*line, within_s=2 * PATIENCE_S)
    said, counts = _said_and_counted(done)
    assert counts["ran"] and counts["killed"], done
    assert set(said) == {"good pull"}
    failed = as_user.sealed_events("exec_verification_failed")
    assert failed and len(failed) <= counts["killed"]


@pytest.mark.parametrize("how", ["forges", "stops", "asks", "ends"])
def test_an_exec_that_looks_over_is_compared_and_its_tracer_sees_the_end(
    as_user: Sigwrap, compiled: Path, first: Path, how: str
) -> None:
    shutil.copy(first, as_user.folder / "bad")
    path, bad = policy(as_user.folder, RULES), str(as_user.folder / "bad")
    line = ("-p", path, "--", str(compiled / "traced_slowly"), how, bad, str(ROUNDS))
    done = as_user.run(*line, str(AT_MOST_S), "pulk", within_s=2 * PATIENCE_S)
    said, counts = _said_and_counted(done)
    assert set(said) <= {"good pull"}
    if how in ("asks", "ends"):
        assert sum(counts.values()) == ROUNDS
    else:
        assert counts["ran"] + counts["killed"]


def test_what_looks_as_before_is_compared(as_user: Sigwrap, compiled: Path) -> None:
    path = policy(as_user.folder, RULES)
    line = ("-p", path, "--", str(compiled / "traced_alike"), str(ROUNDS), str(AT_MOST_S))
    said, counts = _said_and_counted(as_user.run(*line, within_s=2 * PATIENCE_S))
    assert set(said) <= {"ran pull"}
    assert counts["ran"] + counts["killed"]


def test_nobody_runs_on_after_an_exec(as_user: Sigwrap, compiled: Path, first: Path) -> None:
    program = as_user.folder / "first"
    shutil.copy(first, program)
    line = ("-p", policy(as_user.folder, RULES), "--", str(compiled / "traced_how"), str(program))
    done = as_user.run(*line)
    said = [line for line in done.stdout.decode().splitlines() if line != "first x"]
    assert said == [
        "asked for: ran",
        "blocked: errno 13",
        "attached without a stop: errno 0",
        "attached: ran",
        "seized without a stop: errno 0",
        "stop dropped: errno 0",
        "stop dropped as of old: errno 0",
        "stop kept: errno 0",
        "stop dropped as i386: errno 0",
        "seized: ran",
        "stops after execs: 1",
        "seized by one of two: errno 1",
        "stop dropped by one of two: errno 1",
        "seized by one of two: ran",
        "with threads: ran",
        "tracer traced: errno 13",
    ]
    denied = as_user.sealed_events("exec_denied")
    assert {event.payload["rule_name"] for event in denied} == {"builtin:traced"}
    assert all(event.payload["verified"] for event in as_user.sealed_events("exec_allowed"))
    blocked = as_user.sealed_events("signal_blocked")
    assert [event.payload["rule_name"] for event in blocked] == 2 * ["builtin:ptrace"]


def _said_and_counted(
    done: subprocess.CompletedProcess[bytes],
) -> tuple[list[str], dict[str, int]]:
    *said, last = done.stdout.decode().splitlines()
    words = last.split()
    return said, dict(zip(words[::2], map(int, words[1::2]), strict=True))
