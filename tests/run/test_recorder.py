"""What the recorder says where an event can't be recorded."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from sigwrap.log.writer import SessionLog
from sigwrap.session.recorder import Recorder
from sigwrap.session.run_end import LimitReached
from tests.support.stand_in import session_of

FULL = "log_size: the event log has reached its limit of 300 bytes"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(now_s=1000.0, time_ns=time.time_ns)
    clock.monotonic = lambda: clock.now_s
    monkeypatch.setattr("sigwrap.session.recorder.time", clock)
    return clock


class Ending:
    """What a full log says to its session."""

    def __init__(self) -> None:
        self.will_end: list[LimitReached] = []  # while a request is denied for it
        self.ends: list[LimitReached] = []
        run = SimpleNamespace(will_end=self.will_end.append, limit_reached=self.ends.append)
        ending = SimpleNamespace(run=run)
        loop = SimpleNamespace(call_in=lambda _seconds, call, *words: call(*words))
        self.session: Any = session_of(loop=loop, ending=ending)


def recorder(folder: Path, said: list[str], *, ends_run: bool) -> Recorder:
    log = SessionLog.create(str(folder), "s1")
    made = Recorder(log, said.append, 300, ends_run=ends_run)
    assert made.record("session_started", 1, {"name": "x" * 60})
    return made


def test_that_a_full_log_denies_is_said_again_to_who_comes_later(
    tmp_path: Path, clock: SimpleNamespace
) -> None:
    said: list[str] = []
    full = recorder(tmp_path, said, ends_run=False)
    while full.record("exec_allowed", 1, {}):
        pass
    assert said[-1] == f"{FULL}; sigwrap now denies every exec and signal"
    for seconds in (1.0, 9.0, 9.0):
        clock.now_s += seconds
        assert not full.record("exec_allowed", 1, {})
    assert said[-1] == f"{FULL}; sigwrap now denies every exec and signal"
    clock.now_s += 11.0
    assert not full.record("exec_allowed", 1, {})
    assert said[-1] == f"{FULL}; sigwrap denies every exec and signal"
    assert len(said) == 3
    full.log.close()


def test_half_is_said_before_full_also_where_one_event_after_it_fills_the_log(
    tmp_path: Path,
) -> None:
    said: list[str] = []
    ending = Ending()
    full = recorder(tmp_path, said, ends_run=True)
    full.attend(ending.session)
    assert not full.record("exec_allowed", 1, {})
    assert said == [
        "the event log has reached half of its limit of 300 bytes",
        f"{FULL}; sigwrap ends the run",
    ]
    assert ending.ends == ending.will_end == [LimitReached("log_size", 300, FULL, full.log.size)]
    full.log.close()


def test_the_end_of_a_process_is_recorded_in_a_full_log_and_nothing_is_refused_for_it(
    tmp_path: Path,
) -> None:
    ending = Ending()
    full = recorder(tmp_path, [], ends_run=True)
    full.attend(ending.session)
    so_far = full.log.size
    assert full.record("process_exited", 1, {})
    (limit,) = ending.ends
    assert limit.used is not None and so_far <= limit.used < full.log.size
    assert limit == LimitReached("log_size", 300, FULL, limit.used)
    assert ending.will_end == []
    assert not full.record("exec_allowed", 1, {})
    assert (len(ending.ends), len(ending.will_end)) == (1, 1)
    full.log.close()


MIB = 1 << 20


@pytest.mark.parametrize(
    ("maximum", "size", "recorded"),
    [
        (MIB, MIB - 1, {"exec_allowed", "process_exited", "session_ended"}),
        (MIB, MIB, {"process_exited", "session_ended"}),
        (MIB, 2 * MIB - 1, {"process_exited", "session_ended"}),
        (MIB, 2 * MIB, {"session_ended"}),
        (160 * MIB, 170 * MIB - 1, {"process_exited", "session_ended"}),
        (160 * MIB, 170 * MIB, {"session_ended"}),
    ],
)
def test_beyond_the_limit_the_tree_s_end_is_still_recorded(
    maximum: int, size: int, recorded: set[str]
) -> None:
    log: Any = SimpleNamespace(size=size, append_text=lambda *_words: None)
    full = Recorder(log, lambda _text: None, maximum, ends_run=False)
    events = ("exec_allowed", "process_exited", "session_ended")
    assert {event for event in events if full.record(event, 1, {})} == recorded


def test_half_and_full_are_said_once_each_and_of_a_log_full_at_once_only_full() -> None:
    for sizes, half, is_full in (
        ((499,), 0, False),
        ((500, 999, 999), 1, False),
        ((500, 1000, 5000), 1, True),
        ((2000, 2000), 0, True),
    ):
        said: list[str] = []
        log: Any = SimpleNamespace(size=0, append_text=lambda *_words: None)
        recorder = Recorder(log, said.append, 1000)
        for log.size in sizes:
            recorder.record("process_exited", 1, {})
        assert [text.endswith("half of its limit of 1000 bytes") for text in said] == (
            [True] * half + [False] * is_full
        )
