"""How much each thing may cost at the most."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tests.bench.measuring import PROCESSOR, VALUE, WALL, Figure
from tests.bench.results import Result

_BOTH = (WALL, PROCESSOR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    key: str
    """Of the measurement."""
    what: str
    figure: str
    """Of that measurement's."""
    limit: float
    unit: str
    is_least: bool = False
    """The figure may not be less."""
    counts: tuple[str, ...] = _BOTH
    """Which kinds of time have to keep to it; others are told."""

    @property
    def words(self) -> str:
        return f"{'≥' if self.is_least else '≤'} {self.limit:g} {self.unit}"

    def is_met(self, value: float) -> bool:
        return value >= self.limit if self.is_least else value <= self.limit

    def found(self, results: Mapping[str, Result]) -> Figure:
        """Empty where it was not measured."""
        result = results.get(self.key)
        return {} if result is None else result.figures.get(self.figure, {})

    def verdict(self, found: Figure) -> str:
        """What could not be measured, for the noise, keeps to nothing."""
        kinds = [each for each in self.counts if not math.isnan(found.get(each, math.nan))]
        met = [each for each in kinds if self.is_met(found[each])]
        if not kinds:
            return "-"
        if len(met) == len(self.counts):
            return "yes"
        return f"by {_NAMES[met[0]]} only" if met else "no"


_NAMES = {WALL: "wall", PROCESSOR: "processor", VALUE: "value"}


def _of_strace(key: str, what: str, limit: float) -> Ceiling:
    unit = "of what strace adds"
    return Ceiling(key=key, what=what, figure="of_strace", limit=limit, unit=unit)


def _no_cost(key: str, what: str) -> Ceiling:
    return Ceiling(key=key, what=what, figure="added_us", limit=1, unit="µs added")


def _start(what: str, form: str, limit: float) -> Ceiling:
    return Ceiling(
        key="start",
        what=what,
        figure=form,
        limit=limit,
        unit="x python3 -c pass",
        counts=(PROCESSOR,),
    )


def _value(
    key: str, what: str, figure: str, limit: float, unit: str, *, is_least: bool = False
) -> Ceiling:
    return Ceiling(
        key=key,
        what=what,
        figure=figure,
        limit=limit,
        unit=unit,
        is_least=is_least,
        counts=(VALUE,),
    )


def _wall(
    key: str, what: str, figure: str, limit: float, unit: str, *, is_least: bool = False
) -> Ceiling:
    return Ceiling(
        key=key,
        what=what,
        figure=figure,
        limit=limit,
        unit=unit,
        is_least=is_least,
        counts=(WALL,),
    )


_EXEC = "exec of /bin/true from dash"
_PAGE = "report, as a page"

CEILINGS = (
    _of_strace("exec", _EXEC, 0.9),
    Ceiling(key="exec", what=_EXEC, figure="ratio", limit=1.4, unit="x native"),
    _of_strace("signal", "kill(child, SIGUSR1), logged", 0.75),
    _no_cost("question", "kill(child, 0)"),
    _no_cost("noise", "a signal declared noise"),
    _of_strace("probes", "failed probe along PATH", 0.9),
    _of_strace("configure", "probing as ./configure does", 0.9),
    _of_strace("build", "make -j2 of tiny C files", 0.9),
    _of_strace("npm", "npm ci of local packages", 0.9),
    _wall("crowd", "2,000 programs at once", "ratio", 1.5, "x native"),
    _wall("redirect", "redirect in place", "added_ms", 1, "ms over the replacement"),
    _wall("brokered", "1 GiB through a brokered cat", "speed", 0.9, "x native", is_least=True),
    _value("recorded", "recorded text", "text_mb_per_s", 150, "MB/s", is_least=True),
    _value("recorded", "recorded bytes", "binary_mb_per_s", 150, "MB/s", is_least=True),
    _start("start, package", "package", 4.5),
    _start("start, binary", "binary", 8),
    _value("start", "size of the binary", "size_mb", 16, "MB"),
    _start("start, sigwrap-forward, package", "forwarder, package", 2.5),
    _start("start, sigwrap-forward, binary", "forwarder, binary", 5),
    _value("memory", "supervisor and front process (PSS)", "both_mb", 30, "MB"),
    _wall("sessions", "slowest of 8 sessions", "sigwrap_of_alone", 1.2, "x alone per core"),
    _wall("reading", "report of a million events", "report", 8, "s"),
    _value("reading", "report of a million events", "report, memory", 150, "MB"),
    _wall("reading", "the same as a page", _PAGE, 8, "s"),
    _value("reading", "the same as a page", f"{_PAGE}, memory", 150, "MB"),
    _value("growth", "an event at a million, beside one at first", "last_of_first", 1.2, "x"),
    _value("decision", "a decision by a policy of 200 rules", "us", 10, "µs"),
)
