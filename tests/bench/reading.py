"""What it costs to read long logs, and many: each command once, since a million events are many."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from tests.bench.measuring import PROCESSOR, VALUE, WALL, Failed
from tests.bench.results import Result
from tests.bench.setting import PACKAGE, Setting
from tests.support.long_session import make_long, recorded_demo

_SESSIONS = 500
_EVENTS_OF_EACH = 20


def measure(setting: Setting) -> Result:
    folder, events = setting.make_folder("reading"), setting.amount(1_000_000, 20_000)
    sessions = setting.amount(_SESSIONS, 20)
    long, many = folder / "long", folder / "many"
    # In another process: what this one has in memory would count as a child's, until that execs.
    maker = [sys.executable, "-m", "tests.support.long_session", str(long), str(events)]
    subprocess.run(maker, stdout=subprocess.DEVNULL, check=True)
    recorded = recorded_demo(folder, PACKAGE)
    for number in range(sessions):
        make_long(many, f"session-{number}", recorded, _EVENTS_OF_EACH)
    result = Result(key="reading", name=f"reading a log of {events:,} events")
    for name, store, words in (
        ("report", long, ["report"]),
        ("report --json", long, ["report", "--json"]),
        ("report, as a page", long, ["report", "--format", "html"]),
        ("verify", long, ["verify"]),
        ("replay --instant", long, ["replay", "--instant"]),
        (f"sessions, of {sessions}", many, ["sessions"]),
    ):
        _measure_one(result, name, [str(PACKAGE), *words, "--store", str(store)])
    return result


def _measure_one(result: Result, name: str, line: list[str]) -> None:
    started = time.perf_counter()
    child = subprocess.Popen(line, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    wall_s = time.perf_counter() - started
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise Failed(f"{' '.join(line)}: status {child.returncode}")
    result.figures[name] = {WALL: wall_s, PROCESSOR: usage.ru_utime + usage.ru_stime}
    result.figures[f"{name}, memory"] = {VALUE: usage.ru_maxrss / 1024}
