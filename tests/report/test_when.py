from __future__ import annotations

import pytest

from sigwrap.cli.report import moment_ns

SECOND = 1_000_000_000
STARTED_NS = 1_763_766_000 * SECOND  # 2025-11-21 23:00:00 UTC
ENDED_NS = STARTED_NS + 7200 * SECOND


def at(words: str, *, utc: bool = True) -> float:
    """Return the moment in seconds since the start."""
    found = moment_ns(words, started_ns=STARTED_NS, ended_ns=ENDED_NS, utc=utc)
    return (found - STARTED_NS) / SECOND


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        ("+90s", 90),
        ("10m", 6600),
        ("1h30m", 1800),
        ("2w", 7200 - 1_209_600),
        ("-10m", 6600),
        ("23:30", 1800),
        ("23:30:05", 1805),
        ("0:30", 5400),  # past midnight
        ("22:59", -60),
        ("2025-11-21 23:10", 600),
        ("2025-11-21T23:10:00", 600),
        ("2025-11-22T00:10:00+01:00", 600),
    ],
)
def test_a_moment(words: str, seconds: float) -> None:
    assert at(words) == seconds


def test_a_moment_without_a_zone_is_local(monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert at("2025-11-22 08:10", utc=False) == 600
        assert at("8:10", utc=False) == 600
        assert at("23:10") == 600
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("words", ["", "+", "yesterday", "25:00", "12:61", "+5", "2025-13-01"])
def test_what_is_no_moment(words: str) -> None:
    with pytest.raises(ValueError, match=None):
        at(words)
