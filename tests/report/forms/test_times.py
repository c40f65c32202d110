from __future__ import annotations

import time

import pytest

from sigwrap.report.forms.times import ago, byte_size, iso_time, local_time, span

MOMENT_NS = 1_763_705_000_000_000_042


def test_iso_time_keeps_all_nanoseconds_and_the_order() -> None:
    assert iso_time(MOMENT_NS) == "2025-11-21T06:03:20.000000042Z"
    assert iso_time(0) == "1970-01-01T00:00:00.000000000Z"
    assert iso_time(MOMENT_NS) < iso_time(MOMENT_NS + 1) < iso_time(MOMENT_NS + 10**9)


def test_local_time_names_its_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "XYZ-5:30")
        time.tzset()
        assert local_time(MOMENT_NS) == "2025-11-21 11:33:20 XYZ"
    time.tzset()


@pytest.mark.parametrize(
    ("duration_ns", "shown"),
    [
        (0, "0.00 s"),
        (1_234_000_000, "1.23 s"),
        (10_000_000_000, "10.0 s"),
        (12_340_000_000, "12.3 s"),
        (60_000_000_000, "1 min 0 s"),
        (3_599_600_000_000, "1 h 0 min"),
        (7_260_000_000_000, "2 h 1 min"),
    ],
)
def test_spans_are_short(duration_ns: int, shown: str) -> None:
    assert span(duration_ns) == shown


@pytest.mark.parametrize(
    ("duration_ns", "shown"),
    [(-1, ""), (999_999_999, ""), (10**9, "1 s ago"), (7_199 * 10**9, "1 h ago")],
)
def test_ago_is_rough(duration_ns: int, shown: str) -> None:
    assert ago(duration_ns) == shown


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0B"),
        (999, "999B"),
        (1000, "1.0K"),
        (10_200, "10K"),
        (1 << 20, "1.0M"),
        (int(1.5 * (1 << 30)), "1.5G"),
        (1 << 50, "1.0P"),
    ],
)
def test_a_size_has_at_most_four_digits(size: int, shown: str) -> None:
    assert byte_size(size) == shown
