"""Eight sessions at once beside one alone, and the memory of one."""

from __future__ import annotations

import os
import re
import statistics
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.bench.measuring import (
    VALUE,
    WALL,
    Cost,
    Subject,
    end_of,
    interleaved,
    processor_time_s,
    run,
    start,
)
from tests.bench.peers import PROGRAMS
from tests.bench.results import OURS, Result, compared
from tests.bench.setting import Setting, sigwrap
from tests.bench.workloads import exec_line
from tests.support.processes import Roles

_AT_ONCE = 8


def measure_at_once(setting: Setting) -> Result:
    """The cost of many is that of the slowest; the processor time is a session's share."""
    count = setting.amount(400, 100)
    line = exec_line(count)
    subjects: dict[str, Subject] = {}
    for name, prefix in (("native", ()), (OURS, sigwrap())):
        subjects[f"{name}, alone"] = _alone((*prefix, *line))
        subjects[f"{name}, slowest of {_AT_ONCE}"] = _together((*prefix, *line))
    rounds = interleaved(subjects, setting.rounds)
    name = f"{_AT_ONCE} sessions of {count} execs at once"
    result = compared("sessions", name, rounds, unit="session")
    turns = _AT_ONCE / min(_AT_ONCE, os.cpu_count() or 1)
    alone, many = rounds[f"{OURS}, alone"], rounds[f"{OURS}, slowest of {_AT_ONCE}"]
    of_alone = [b.wall_s / (a.wall_s * turns) for a, b in zip(alone, many, strict=True)]
    result.figures[f"{OURS}_of_alone"] = {WALL: statistics.median(of_alone)}
    return result


def _alone(line: tuple[str, ...]) -> Callable[[], Cost]:
    return lambda: run(line, says_wall=True)


def _together(line: tuple[str, ...]) -> Callable[[], Cost]:
    def run_all() -> Cost:
        before_s = processor_time_s()
        children = [start(line) for _ in range(_AT_ONCE)]
        return Cost(
            max(float(end_of(child)) for child in children),
            (processor_time_s() - before_s) / _AT_ONCE,
        )

    return run_all


def measure_memory(setting: Setting) -> Result:
    """After so many execs, while its command idles."""
    count = setting.amount(1_000, 200)
    job = ["dash", str(PROGRAMS / "idle.sh"), str(PROGRAMS / "execs.sh"), str(count)]
    child = subprocess.Popen([*sigwrap(), *job], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin is not None and child.stdout is not None
    try:
        child.stdout.readline()
        roles = Roles.of(child.pid)
        pss = {"front": _pss_mb(roles.front), "supervisor": _pss_mb(roles.supervisor)}
    finally:
        child.communicate(b"\n")
    figures = {f"{name}_mb": {VALUE: value} for name, value in pss.items()}
    figures["both_mb"] = {VALUE: sum(pss.values())}
    name = f"memory (PSS) after {count} execs"
    return Result(key="memory", name=name, figures=figures)


def _pss_mb(pid: int) -> float:
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    (kib,) = re.findall(r"^Pss: +(\d+) kB$", text, re.MULTILINE)
    return int(kib) * 1024 / 1e6
