"""What a session's own processes hold and use, as the kernel counts it."""

from __future__ import annotations

import os
import re
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from tests.endurance.load import Load

_KIB = 1024
_QUIET_S, _LOOKS_EVERY_S, _QUIET_WITHIN_S = 0.1, 0.02, 30.0
_YARDSTICKS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    private: int
    """Bytes that nobody else has: what a leak adds to."""
    shared_too: int
    """Those, and a share of what others have as well (PSS)."""
    descriptors: int
    threads: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """After a number of rounds, while the session has nothing to do. What is per event is of the
    rounds since the sample before."""

    at_s: float
    events: int
    supervisor: Held
    front: Held
    wall_us: float
    processor_us: float
    exec_us: float
    bytes_of_log: float
    pace: float
    """How long a fixed piece of work takes this machine just now, in microseconds: it is shared,
    and its processors have other speeds at other times."""


class Sampler:
    def __init__(self, load: Load) -> None:
        self._load = load
        self._started_s = time.monotonic()
        self._journal = load.journal.open("rb")
        self._events, self._bytes = self._new_events()
        self._processor_ns = _processor_ns(load.roles.supervisor)

    def after(self, rounds: int, *, asks: bool = True) -> Sample:
        started_s = time.monotonic()
        exec_us = self._load.rounds(rounds, asks=asks)
        wall_s = time.monotonic() - started_s
        processor_ns = _quiet(self._load.roles.supervisor)
        events, size = self._new_events()
        self._events += events
        used_ns, self._processor_ns = processor_ns - self._processor_ns, processor_ns
        return Sample(
            at_s=time.monotonic() - self._started_s,
            events=self._events,
            supervisor=_held(self._load.roles.supervisor),
            front=_held(self._load.roles.front),
            wall_us=wall_s * 1e6 / events,
            processor_us=used_ns / 1e3 / events,
            exec_us=exec_us,
            bytes_of_log=size / events,
            pace=statistics.median(_fixed_work_us() for _ in range(_YARDSTICKS)),
        )

    def close(self) -> None:
        self._journal.close()

    def _new_events(self) -> tuple[int, int]:
        """And their size: a line each."""
        lines = size = 0
        while read := self._journal.read(1 << 20):
            lines += read.count(b"\n")
            size += len(read)
        return lines, size


def _held(pid: int) -> Held:
    memory = dict(re.findall(r"^(\w+): +(\d+) kB$", _proc(pid, "smaps_rollup"), re.MULTILINE))
    (threads,) = re.findall(r"^Threads:\t(\d+)$", _proc(pid, "status"), re.MULTILINE)
    return Held(
        private=(int(memory["Private_Clean"]) + int(memory["Private_Dirty"])) * _KIB,
        shared_too=int(memory["Pss"]) * _KIB,
        descriptors=len(os.listdir(f"/proc/{pid}/fd")),
        threads=int(threads),
    )


def _proc(pid: int, name: str) -> str:
    return Path(f"/proc/{pid}/{name}").read_text()


def _processor_ns(pid: int) -> int:
    """Of the thread that does it all."""
    return int(_proc(pid, "schedstat").split()[0])


def _quiet(pid: int) -> int:
    """Once it has put away what it put off until it is idle; its processor time until then."""
    before, since_s = _processor_ns(pid), time.monotonic()
    until_s = since_s + _QUIET_WITHIN_S
    while (now_s := time.monotonic()) < until_s and now_s - since_s < _QUIET_S:
        time.sleep(_LOOKS_EVERY_S)
        used = _processor_ns(pid)
        if used - before > _LOOKS_EVERY_S * 1e9 / 10:
            since_s = now_s
        before = used
    return before


def _fixed_work_us() -> float:
    started_ns = time.thread_time_ns()
    sum(number * number for number in range(20_000))
    return (time.thread_time_ns() - started_ns) / 1e3
