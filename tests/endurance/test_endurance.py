"""What a session holds, and what an event costs it, stays the same under a mixed load; and where it
doesn't, that is found."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.endurance.endurance import endure
from tests.endurance.verdict import MEMORY_OF_AN_EARLY_EVENT, verdict
from tests.support.harness import IS_BINARY, Sigwrap

SMALL_TABLES = str(Path(__file__).parent / "programs" / "small_tables.py")


@pytest.mark.skipif(IS_BINARY, reason="the tables of the binary can't be made small")
@pytest.mark.parametrize("leaks", [False, True])
def test_what_grows_under_load_is_what_leaks(sigwrap: Sigwrap, leaks: bool) -> None:
    line = [sys.executable, SMALL_TABLES, *(["--leak"] if leaks else [])]
    samples = endure(sigwrap, line, most=10, rounds=3, asks_every=6)
    found = verdict(samples, memory_of_an_event=MEMORY_OF_AN_EARLY_EVENT)
    # A few samples can't tell these from what others on the machine do.
    found = [e for e in found if "µs" not in e.series.unit and "PSS" not in e.series.name]
    expected = {"supervisor, private memory", "supervisor, descriptors"} if leaks else set()
    grows = {each.series.name for each in found if not each.is_flat}
    assert grows == expected, list(map(str, found))
