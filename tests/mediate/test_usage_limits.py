from __future__ import annotations

import pytest

from sigwrap.control.usage import (
    LATEST_FOR_MEMORY_S,
    LATEST_S,
    SOONEST_FOR_MEMORY_S,
    SOONEST_S,
    LimitNear,
    ProcessorTime,
    ProcessUse,
    UsageLimits,
)
from sigwrap.session.run_end import KillDemanded, LimitReached

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


def limits(cpu: int = 0, memory: int = 0, processors: int = 2) -> UsageLimits:
    return UsageLimits(cpu_time_s=cpu, memory_bytes=memory, processors=processors)


def test_half_and_all_of_the_processor_time_are_passed_once_each() -> None:
    subject = limits(cpu=10)
    assert subject.cpu_used(4999) == []
    assert subject.cpu_used(5000) == [LimitNear("cpu_time", 10, 5)]
    assert subject.cpu_used(10_000) == []
    why = "cpu_time: used 12.4 s of 10 s of processor time"
    assert subject.cpu_used(12_340) == [LimitReached("cpu_time", 10, why, 12.4)]
    assert subject.cpu_used(50_000) == []


def test_without_a_limit_nothing_is_passed() -> None:
    subject = limits()
    assert subject.cpu_used(1 << 60) == []
    assert not subject.is_worth_a_closer_look(1 << 60)


def test_memory_that_was_summed_up_counts_when_it_was_seen_twice() -> None:
    subject = limits(memory=100 * MIB)
    assert subject.memory_used(60 * MIB, 1.0, is_certain=False) == [
        LimitNear("memory", 100 * MIB, 60 * MIB)
    ]
    assert subject.memory_used(101 * MIB, 2.0, is_certain=False) == []
    assert subject.memory_used(90 * MIB, 3.0, is_certain=False) == []
    assert subject.memory_used(101 * MIB, 4.0, is_certain=False) == []
    assert subject.next_look_s(0) == SOONEST_FOR_MEMORY_S
    used, why = int(102.5 * MIB), "memory: 102.5M in use, over the limit of 100M"
    reached = LimitReached("memory", 100 * MIB, why, used)
    assert subject.memory_used(used, 5.0, is_certain=False) == [reached]


def test_memory_beyond_the_limit_counts_once() -> None:
    (reached,) = limits(memory=1024).memory_used(2048, 1.0, is_certain=True)
    assert reached == LimitReached("memory", 1024, "memory: 2K in use, over the limit of 1K", 2048)
    subject = limits(memory=100 * MIB)
    subject.memory_used(200 * MIB, 1.0, is_certain=True)
    assert subject.memory_used(249 * MIB, 2.0, is_certain=True) == []
    (grows,) = subject.memory_used(251 * MIB, 3.0, is_certain=True)
    assert grows == KillDemanded("memory: 251M in use by now, over the limit of 100M")
    assert subject.memory_used(900 * MIB, 4.0, is_certain=True) == []
    subject = limits(memory=100 * MIB)
    ran_out = subject.memory_ran_out()
    assert ran_out is not None and ran_out.why == (
        "memory: the kernel killed a process at the limit of 100M"
    )
    assert subject.memory_ran_out() is None
    assert subject.memory_used(101 * MIB, 1.0, is_certain=True) == []


def test_an_upper_bound_is_enough_below_half_and_then_up_to_the_limit() -> None:
    for at_most, closer in ((49, False), (50, True), (500, True)):
        assert limits(memory=100).is_worth_a_closer_look(at_most) is closer
    subject = limits(memory=100)
    subject.memory_used(60, 1.0, is_certain=True)
    assert not subject.is_worth_a_closer_look(99)
    assert subject.is_worth_a_closer_look(100)


# When to look again


def test_the_next_look_comes_before_all_processors_can_have_used_the_rest() -> None:
    for used_ms, wait_s in ((0, LATEST_S), (2000, 4.0), (9000, 0.5), (9999, SOONEST_S)):
        subject = limits(cpu=10)
        subject.cpu_used(used_ms)
        assert subject.next_look_s(0.0001) == pytest.approx(wait_s)


def test_memory_is_looked_at_the_more_often_the_less_is_left_and_the_faster_it_grows() -> None:
    subject = limits(memory=1024 * MIB)
    subject.memory_used(1 * MIB, 1.0, is_certain=False)
    assert subject.next_look_s(0) == pytest.approx(LATEST_FOR_MEMORY_S, rel=0.01)
    subject.memory_used(512 * MIB, 2.0, is_certain=False)
    assert subject.next_look_s(0) == pytest.approx(0.5, rel=0.01)
    subject.memory_used(768 * MIB, 2.1, is_certain=False)  # 2.5 GB a second
    assert subject.next_look_s(0) == pytest.approx(0.05, rel=0.01)


def test_looks_take_a_twentieth_of_the_time_and_none_after_the_limit() -> None:
    subject = limits(cpu=10, memory=100)
    subject.cpu_used(9999)
    assert subject.next_look_s(0.2) == pytest.approx(4.0)
    subject = limits(cpu=1)
    subject.cpu_used(2000)
    assert subject.next_look_s(0) == LATEST_S
