from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sigwrap.control import usage
from sigwrap.control.usage import (
    LATEST_FOR_MEMORY_S,
    LATEST_S,
    SOONEST_FOR_MEMORY_S,
    SOONEST_S,
    ProcessorTime,
    ProcessUse,
    Usage,
)
from sigwrap.policy.judge.rules import Limits
from sigwrap.session.run_end import LimitReached

MIB = 1 << 20
SUPERVISOR = 10


def used(pid: int, own_ms: int, *, by: int = SUPERVISOR, children: int = 0) -> ProcessUse:
    return ProcessUse(pid, 1000 + pid, by, own_ms, children, 0)


def total(*looks: list[ProcessUse], reaped: int = 0) -> int:
    """At the last of them, from an empty tree on. `reaped`: at the last."""
    subject = ProcessorTime()
    subject.add([], 0)
    return [subject.add(each, reaped if each is looks[-1] else 0) for each in looks][-1]


# Processor time


def test_what_was_used_before_the_first_look_is_not_the_command_s() -> None:
    subject = ProcessorTime()
    assert subject.add([used(11, 40)], 300) == 0
    assert subject.add([used(11, 50)], 300) == 10


def test_a_child_that_was_not_waited_for_counts_as_it_was_last_seen() -> None:
    before = [used(11, 0), used(12, 500, by=11)]
    assert total(before, [used(11, 100)]) == 600
    assert total(before, [used(11, 100, children=500)]) == 600
    assert total(before, [used(11, 100, children=520)]) == 620
    another = ProcessUse(12, 5555, 11, 10, 0, 0)
    assert total(before, [used(11, 0, children=500), another]) == 510
    assert total(before, [another], [used(11, 0)]) == 510


def test_a_child_that_no_look_has_seen_counts_once_it_was_waited_for() -> None:
    assert total([used(11, 0)], [used(11, 10, children=300)]) == 310
    assert total([used(11, 0)], [], reaped=310) == 310


def test_an_orphan_counts_once_wherever_it_was_adopted() -> None:
    before = [used(11, 100), used(12, 50, by=11), used(13, 500, by=12)]
    assert total(before, [used(11, 100, children=50)], reaped=500) == 650
    assert total(before, [used(11, 100, children=550)]) == 650
    assert total(before, [used(11, 100, children=50)]) == 650


def test_a_process_that_waits_for_another_is_not_counted_twice() -> None:
    before = [used(11, 0), used(12, 100, by=11), used(13, 500, by=12)]
    between = [used(11, 0), used(12, 100, by=11)]
    assert total(before, between) == 600
    assert total(before, between, [used(11, 0), used(12, 100, by=11, children=500)]) == 600


# What is passed


class Run(Usage):
    """Has no control groups; `passed` is what the limits came to."""

    def __init__(self, cpu: int = 0, memory: int = 0, processors: int = 2) -> None:
        super().__init__(Limits(cpu_time_s=cpu, memory_bytes=memory), 0, "none")
        self.passed: list[object] = []
        self._processors = processors
        self._recorder: Any = SimpleNamespace(record=self._record)
        self._run: Any = SimpleNamespace(limit_reached=self.passed.append, kill=self.passed.append)

    def _record(self, event: str, _pid: int, payload: dict[str, object]) -> None:
        self.passed.append((event, payload))

    def after_cpu(self, used_ms: int) -> list[object]:
        self.passed.clear()
        self.cpu_used(used_ms)
        return list(self.passed)

    def after_memory(self, used: int, *, is_certain: bool = False) -> list[object]:
        self.passed.clear()
        self.memory_used(used, is_certain=is_certain)
        return list(self.passed)


@pytest.fixture(autouse=True)
def no_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "make_groups", lambda *_: [])


def near(limit: str, maximum: int, used: int) -> tuple[str, dict[str, object]]:
    return ("limit_near", {"limit": limit, "maximum": maximum, "used": used})


def test_half_and_all_of_the_processor_time_are_passed_once_each() -> None:
    subject = Run(cpu=10)
    assert subject.after_cpu(4999) == []
    assert subject.after_cpu(5000) == [near("cpu_time", 10, 5)]
    assert subject.after_cpu(10_000) == []
    why = "cpu_time: used 12.4 s of 10 s of processor time"
    assert subject.after_cpu(12_340) == [LimitReached("cpu_time", 10, why, 12.4)]
    assert subject.after_cpu(50_000) == []


def test_without_a_limit_nothing_is_passed() -> None:
    assert Run().after_cpu(1 << 60) == []


def test_memory_that_was_summed_up_counts_when_it_was_seen_twice() -> None:
    subject = Run(memory=100 * MIB)
    assert subject.after_memory(60 * MIB) == [near("memory", 100 * MIB, 60 * MIB)]
    assert subject.after_memory(101 * MIB) == []
    assert subject.after_memory(90 * MIB) == []
    assert subject.after_memory(101 * MIB) == []
    assert subject.next_look_s(0) == SOONEST_FOR_MEMORY_S
    used, why = int(102.5 * MIB), "memory: 102.5M in use, over the limit of 100M"
    assert subject.after_memory(used) == [LimitReached("memory", 100 * MIB, why, used)]


def test_memory_beyond_the_limit_counts_once() -> None:
    (reached,) = Run(memory=1024).after_memory(2048, is_certain=True)
    assert reached == LimitReached("memory", 1024, "memory: 2K in use, over the limit of 1K", 2048)
    subject = Run(memory=100 * MIB)
    subject.after_memory(200 * MIB, is_certain=True)
    assert subject.after_memory(249 * MIB, is_certain=True) == []
    (grows,) = subject.after_memory(251 * MIB, is_certain=True)
    assert grows == "memory: 251M in use by now, over the limit of 100M"
    assert subject.after_memory(900 * MIB, is_certain=True) == []


def test_memory_that_ran_out_is_the_limit_once() -> None:
    subject = Run(memory=100 * MIB)
    assert subject.limit_at_end() is None
    group: Any = SimpleNamespace(ran_out_of_memory=lambda: True)
    subject._groups = [group]
    ran_out = subject.limit_at_end()
    assert ran_out is not None and ran_out.why == (
        "memory: the kernel killed a process at the limit of 100M"
    )
    assert subject.limit_at_end() is None
    assert subject.after_memory(101 * MIB, is_certain=True) == []


def test_an_upper_bound_is_enough_below_half_and_then_up_to_the_limit() -> None:
    for at_most, closer in ((49, False), (50, True), (500, True)):
        assert Run(memory=100).is_worth_a_closer_look(at_most) is closer
    subject = Run(memory=100)
    subject.memory_used(60, is_certain=True)
    assert not subject.is_worth_a_closer_look(99)
    assert subject.is_worth_a_closer_look(100)


# When to look again


def test_the_next_look_comes_before_all_processors_can_have_used_the_rest() -> None:
    for used_ms, wait_s in ((0, LATEST_S), (2000, 4.0), (9000, 0.5), (9999, SOONEST_S)):
        subject = Run(cpu=10)
        subject.cpu_used(used_ms)
        assert subject.next_look_s(0.0001) == pytest.approx(wait_s)


def test_memory_is_looked_at_the_more_often_the_less_is_left() -> None:
    subject = Run(memory=4096 * MIB)
    for used, wait_s in ((1, LATEST_FOR_MEMORY_S), (3072, 0.5), (3968, 0.0625), (4095, 0.05)):
        subject.memory_used(used * MIB)
        assert subject.next_look_s(0) == pytest.approx(wait_s, rel=0.01)


def test_looks_take_a_twentieth_of_the_time_and_none_after_the_limit() -> None:
    subject = Run(cpu=10, memory=100)
    subject.cpu_used(9999)
    assert subject.next_look_s(0.2) == pytest.approx(4.0)
    subject = Run(cpu=1)
    subject.cpu_used(2000)
    assert subject.next_look_s(0) == LATEST_S
