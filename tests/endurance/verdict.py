"""Whether what a session holds and uses stays the same, however long it runs.

A line is laid through each series of samples such that outliers don't move it (the median of the
slopes of all pairs, after Theil and Sen); what it gains from the first sample that counts to the
last is held against a bound. What a session fills once (caches, tables, the allocator's pools)
comes in the first of its samples, which don't count."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

from tests.endurance.sampling import Sample

_WARM_UP = 0.25
_FEWEST = 6
_MOST = 400
"""So many samples make 79,800 pairs."""

MEMORY_NOISE = 256 * 1024
MEMORY_OF_AN_EVENT = 8
"""Bytes: no object is that small, so not every event leaves one."""
MEMORY_OF_AN_EARLY_EVENT = 2048
"""Within the first thousands, while caches and the allocator's pools are being filled."""


@dataclass(frozen=True, slots=True)
class Series:
    name: str
    unit: str
    value: Callable[[Sample], float]
    bound: Callable[[float, float], float]
    """Of what it may gain: by its median, and the memory that events may leave."""


@dataclass(frozen=True, slots=True)
class Found:
    series: Series
    median: float
    gains: float
    bound: float

    @property
    def is_flat(self) -> bool:
        return self.gains <= self.bound

    def __str__(self) -> str:
        word = "flat" if self.is_flat else "GROWS"
        unit = self.series.unit
        return (
            f"{word:5} {self.series.name}: {self.median:,.1f} {unit}, gains {self.gains:+,.2f} "
            f"(at most {self.bound:,.2f})"
        )


def _memory(_: float, left: float) -> float:
    return (MEMORY_NOISE + left) / 1024


def _of_median(share: float) -> Callable[[float, float], float]:
    return lambda median, _: median * share


_shared = _of_median(0.25)
"""Others that share come and go."""
_cost = _of_median(0.25)
_log = _of_median(0.05)


def _one(_: float, __: float) -> float:
    return 1.0


SERIES = (
    Series("supervisor, private memory", "KiB", lambda s: s.supervisor.private / 1024, _memory),
    Series("supervisor, memory (PSS)", "KiB", lambda s: s.supervisor.shared_too / 1024, _shared),
    Series("front process, private memory", "KiB", lambda s: s.front.private / 1024, _memory),
    Series("supervisor, descriptors", "open", lambda s: s.supervisor.descriptors, _one),
    Series("front process, descriptors", "open", lambda s: s.front.descriptors, _one),
    Series("supervisor, threads", "running", lambda s: s.supervisor.threads, _one),
    Series("processor time of an event", "µs", lambda s: s.processor_us, _cost),
    Series("elapsed time of an event", "µs", lambda s: s.wall_us, _cost),
    Series("an exec and its wait", "µs", lambda s: s.exec_us, _cost),
    Series("log of an event", "bytes", lambda s: s.bytes_of_log, _log),
)


def verdict(
    samples: Sequence[Sample], *, memory_of_an_event: int = MEMORY_OF_AN_EVENT
) -> list[Found]:
    counted = samples[int(len(samples) * _WARM_UP) :]
    if len(counted) < _FEWEST:
        raise ValueError(f"{len(samples)} samples are too few for a verdict")
    pace = statistics.median(each.pace for each in counted)
    found = []
    for series in SERIES:
        values = [series.value(each) for each in counted]
        if series.bound is _cost:
            values = [v * pace / s.pace for v, s in zip(values, counted, strict=True)]
        median = statistics.median(values)
        left = memory_of_an_event * (counted[-1].events - counted[0].events)
        gains = gain([each.at_s for each in counted], values)
        found.append(Found(series, median, gains, series.bound(median, left)))
    return found


def gain(at_s: Sequence[float], values: Sequence[float]) -> float:
    """From the first to the last, along the line."""
    every = -(-len(at_s) // _MOST)
    points = list(zip(at_s, values, strict=True))[::every]
    slopes = [(v2 - v1) / (t2 - t1) for (t1, v1), (t2, v2) in combinations(points, 2) if t2 > t1]
    return statistics.median(slopes) * (at_s[-1] - at_s[0])
