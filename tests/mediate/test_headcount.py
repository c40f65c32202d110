from __future__ import annotations

from sigwrap.mediate.headcount import Headcount

MAXIMUM = 5


def test_there_is_room_until_the_maximum_is_reached() -> None:
    headcount = Headcount(3)
    assert headcount.has_room(MAXIMUM)
    headcount.add()
    assert headcount.has_room(MAXIMUM)
    headcount.add()
    assert not headcount.has_room(MAXIMUM)


def test_a_count_replaces_the_bound() -> None:
    headcount = Headcount(5)
    headcount.counted(2, MAXIMUM, started_s=100.0, ended_s=101.0)
    assert headcount.has_room(MAXIMUM) and headcount.at_most == 2


def test_a_count_that_found_room_may_be_repeated_at_once() -> None:
    headcount = Headcount(5)
    headcount.counted(4, MAXIMUM, started_s=100.0, ended_s=101.0)
    assert headcount.is_worth_a_count(101.0)


def test_a_count_in_vain_is_not_repeated_for_ten_times_as_long_as_it_took() -> None:
    headcount = Headcount(5)
    headcount.counted(5, MAXIMUM, started_s=100.0, ended_s=101.0)
    assert not headcount.is_worth_a_count(110.9)
    assert headcount.is_worth_a_count(111.0)
