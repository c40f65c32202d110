"""What it costs to read long logs, and many: each command once, since a million events are many."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.long_session import make_long, recorded_demo

EVENTS = 1_000_000
SESSIONS = 500
_EVENTS_OF_EACH = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    name: str
    budget: str = ""
    wall_s: float
    processor_s: float
    peak_mb: float


def measure(folder: Path, sigwrap: Path) -> Iterator[Reading]:
    long, many = folder / "long", folder / "many"
    # In another process: what this one has in memory would count as a child's, until that execs.
    maker = [sys.executable, "-m", "tests.support.long_session", str(long), str(EVENTS)]
    subprocess.run(maker, stdout=subprocess.DEVNULL, check=True)
    recorded = recorded_demo(folder, sigwrap)
    for number in range(SESSIONS):
        make_long(many, f"session-{number}", recorded, _EVENTS_OF_EACH)
    for name, store, words, budget in (
        ("report", long, ["report"], "8 s, 150 MB; aim: 4 s"),
        ("report --json", long, ["report", "--json"], "8 s, 150 MB; aim: 4 s"),
        ("verify", long, ["verify"], ""),
        ("replay --instant", long, ["replay", "--instant"], ""),
        (f"sessions, of {SESSIONS}", many, ["sessions"], ""),
    ):
        yield _once(name, budget, [str(sigwrap), *words, "--store", str(store)])


def _once(name: str, budget: str, line: list[str]) -> Reading:
    started = time.perf_counter()
    child = subprocess.Popen(line, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    wall_s = time.perf_counter() - started
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, line)
    return Reading(
        name=name,
        budget=budget,
        wall_s=wall_s,
        processor_s=usage.ru_utime + usage.ru_stime,
        peak_mb=usage.ru_maxrss / 1024,
    )
