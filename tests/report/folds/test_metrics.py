"""What is counted of odd events; how a whole page reads is in test_export."""

from __future__ import annotations

from typing import Any

import pytest

from sigwrap.events import Event
from sigwrap.report.folds.metrics import MetricsFold

LIMIT = 10_000


def page(*payloads: dict[str, Any]) -> dict[str, str]:
    """Series to value, of signals with these payloads."""
    fold = MetricsFold()
    for payload in payloads:
        fold.add(Event(seq=1, time_ns=1, type="signal_sent", pid=1, payload=payload, hash=""))
    lines = (line for line in fold.lines() if not line.startswith("#"))
    return dict(line.rsplit(" ", 1) for line in lines)


def counted(*payloads: dict[str, Any]) -> list[str]:
    return [value for series, value in page(*payloads).items() if "_total" in series]


def timed(*payloads: dict[str, Any]) -> dict[str, str]:
    return {
        series.partition("platform=")[2].strip('"}'): value
        for series, value in page(*payloads).items()
        if series.startswith("sigwrap_signal_evaluation_seconds_count")
    }


@pytest.mark.parametrize(
    ("count", "value"), [(None, "1"), (1, "1"), (7, "7"), (0, "1"), (-3, "1"), ("x", "1")]
)
def test_an_event_counts_once_or_as_often_as_it_says(count: object, value: str) -> None:
    assert counted({"count": count}) == [value]


@pytest.mark.parametrize(
    ("payload", "decisions"),
    [
        ({"evaluation_us": 0}, {"linux": "1"}),
        ({"evaluation_us": 5, "platform": "other"}, {"other": "1"}),
        ({"evaluation_us": -1}, {}),
        ({"evaluation_us": "5"}, {}),
        ({"evaluation_us": 5, "count": 3}, {}),
        ({}, {}),
    ],
)
def test_a_decision_is_timed_where_its_time_is_known(
    payload: dict[str, Any], decisions: dict[str, str]
) -> None:
    assert timed(payload) == decisions


def test_once_there_are_many_series_only_those_go_on() -> None:
    many = [{"signal_name": str(number), "evaluation_us": 1} for number in range(LIMIT + 1)]
    counts = counted(*many, {"signal_name": "0", "evaluation_us": 1})
    assert len(counts) == LIMIT
    assert sorted(counts)[-1] == "2"


def test_once_there_are_many_platforms_only_those_go_on() -> None:
    many = [{"platform": f"p{number}", "evaluation_us": 1} for number in range(LIMIT + 1)]
    times = timed(*many, many[0])
    assert (len(times), times["p0"]) == (LIMIT, "2")
    assert f"p{LIMIT}" not in times
