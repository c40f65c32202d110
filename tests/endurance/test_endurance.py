"""What a session holds, and what an event costs it, stays the same under a mixed load; and where it
doesn't, that is found."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.endurance.endurance import endure
from tests.endurance.picture import picture
from tests.endurance.sampling import Held, Sample
from tests.endurance.verdict import MEMORY_OF_AN_EARLY_EVENT, Found, gain, verdict
from tests.support.harness import IS_BINARY, Sigwrap

SMALL_TABLES = str(Path(__file__).parent / "programs" / "small_tables.py")


def flat(number: int) -> Sample:
    """One of many alike, but for what a machine makes of it."""
    noise = number * 7919 % 13 / 13
    held = Held(private=20 << 20, shared_too=22 << 20, descriptors=20, threads=1)
    return Sample(
        at_s=5.0 * number,
        events=1_000 * number,
        supervisor=replace(held, private=held.private + int(100_000 * noise)),
        front=held,
        wall_us=2_000 * (1 + noise),
        processor_us=400 * (1 + noise / 2),
        exec_us=1_500 * (1 + noise / 2),
        bytes_of_log=380 + noise,
        pace=500,
    )


def grows(found: list[Found]) -> set[str]:
    return {each.series.name for each in found if not each.is_flat}


def test_noise_is_no_growth_and_growth_is_found_in_noise() -> None:
    samples = [flat(number) for number in range(300)]
    assert grows(verdict(samples)) == set()
    leaking = [
        replace(each, supervisor=replace(each.supervisor, private=(20 << 20) + 16 * each.events))
        for each in samples
    ]
    assert grows(verdict(leaking)) == {"supervisor, private memory"}
    slower = [replace(each, processor_us=400 + each.at_s / 5) for each in samples]
    assert grows(verdict(slower)) == {"processor time of an event"}
    on_a_slower_machine = [replace(each, pace=500 + each.at_s / 4) for each in slower]
    assert grows(verdict(on_a_slower_machine)) == set()


def test_a_line_through_samples_is_not_moved_by_a_few_of_them() -> None:
    at_s = [float(number) for number in range(100)]
    values = [2.0 * at + 5 for at in at_s]
    values[10:30] = [100_000.0] * 20
    assert gain(at_s, values) == pytest.approx(2.0 * 99)
    with pytest.raises(ValueError, match="too few"):
        verdict([flat(number) for number in range(5)])


def test_the_picture_says_what_grows() -> None:
    samples = [flat(number) for number in range(300)]
    drawn = picture(samples, verdict(samples))
    assert "25 minutes of mixed load, 299,000 events: flat" in drawn
    leaking = [replace(each, bytes_of_log=each.events) for each in samples]
    assert "grows: log of an event" in picture(leaking, verdict(leaking))


@pytest.mark.skipif(IS_BINARY, reason="the tables of the binary can't be made small")
@pytest.mark.parametrize("leaks", [False, True])
def test_what_grows_under_load_is_what_leaks(sigwrap: Sigwrap, leaks: bool) -> None:
    line = [sys.executable, SMALL_TABLES, *(["--leak"] if leaks else [])]
    samples = endure(sigwrap, line, most=10, rounds=3, asks_every=6)
    found = verdict(samples, memory_of_an_event=MEMORY_OF_AN_EARLY_EVENT)
    # A few samples can't tell these from what others on the machine do.
    found = [e for e in found if "µs" not in e.series.unit and "PSS" not in e.series.name]
    expected = {"supervisor, private memory", "supervisor, descriptors"} if leaks else set()
    assert grows(found) == expected, list(map(str, found))
