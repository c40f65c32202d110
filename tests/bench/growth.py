"""What an event costs as the log grows, from the first tenth of a million to the last."""

from __future__ import annotations

import statistics
import time

from sigwrap.log.writer import SessionLog
from sigwrap.session.recorder import Recorder
from tests.bench.measuring import VALUE
from tests.bench.results import US, Result
from tests.bench.setting import Setting
from tests.support.long_session import recorded_demo

_AT_A_TIME = 1_000


def measure(setting: Setting) -> Result:
    """In this process, as the supervisor does it: recorded, and indexed when it is time."""
    folder, events = setting.make_folder("growth"), setting.amount(1_000_000, 50_000)
    usual = [e for e in recorded_demo(folder) if e.type in ("exec_allowed", "process_exited")]
    log = SessionLog.create(str(folder), "growing")
    recorder = Recorder(log, setting.say)
    took_us = []
    try:
        for first in range(0, events, _AT_A_TIME):
            started_ns = time.process_time_ns()
            for number in range(first, first + _AT_A_TIME):
                event = usual[number % len(usual)]
                recorder.record(event.type, event.pid, event.payload)
                if log.wants_indexing:
                    log.index_rows(log.pending)
            took_us.append((time.process_time_ns() - started_ns) / 1e9 * US / _AT_A_TIME)
    finally:
        log.discard()
    tenth = len(took_us) // 10  # less takes too short a time: what else runs would decide
    first_us = statistics.median(took_us[:tenth])
    last_us = statistics.median(took_us[-tenth:])
    figures = {
        "first_us": {VALUE: first_us},
        "last_us": {VALUE: last_us},
        "last_of_first": {VALUE: last_us / first_us},
    }
    name = f"an event of a log that grows to {events:,}"
    return Result(key="growth", name=name, figures=figures)
