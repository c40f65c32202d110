"""Ceilings: the most that each operation may cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.bench.measuring import PROCESSOR, VALUE, WALL, Figure
from tests.bench.results import Result


@dataclass(frozen=True, slots=True)
class Ceiling:
    key: str
    """Of the measurement."""
    what: str
    figure: str
    """Of that measurement's."""
    limit: float
    unit: str
    counts: tuple[str, ...] = (WALL, PROCESSOR)
    """Which kinds of time have to keep to it; others are told."""
    is_least: bool = False
    """The figure may not be less."""

    @property
    def words(self) -> str:
        return f"{'≥' if self.is_least else '≤'} {self.limit:g} {self.unit}"

    def is_met(self, value: float) -> bool:
        return value >= self.limit if self.is_least else value <= self.limit

    def found(self, results: Mapping[str, Result]) -> Figure:
        """Empty where it was not measured."""
        result = results.get(self.key)
        return {} if result is None else result.figures.get(self.figure, {})

    def verdict(self, values: Sequence[float]) -> str:
        """Return whether all measured figures keep to the ceiling, or how many do."""
        known = [each for each in values if not math.isnan(each)]
        met = sum(map(self.is_met, known))
        if not known:
            return "-"
        return "yes" if met == len(known) else f"{met} of {len(known)}" if met else "no"


_OF_STRACE = "x strace's"
_EXEC = "exec of /bin/true"
_PAGE = "report, as a page"

_PYTHON = "x python3's"

CEILINGS = (
    Ceiling("exec", _EXEC, "of_strace", 0.8, _OF_STRACE),
    Ceiling("exec", _EXEC, "ratio", 1.4, "x native"),
    Ceiling("signal", "kill(child, SIGUSR1), logged", "of_strace", 0.75, _OF_STRACE),
    Ceiling("question", "kill(child, 0)", "added_us", 8, "µs added"),
    Ceiling("noise", "a signal with `log: false`", "added_us", 1, "µs added"),
    Ceiling("probes", "failed probe", "of_strace", 0.9, _OF_STRACE),
    Ceiling("configure", "./configure", "of_strace", 0.9, _OF_STRACE),
    Ceiling("build", "make -j2", "of_strace", 0.8, _OF_STRACE),
    Ceiling("npm", "npm ci", "of_strace", 0.8, _OF_STRACE),
    Ceiling("pytest", "pytest", "of_strace", 0.8, _OF_STRACE),
    Ceiling("crowd", "2,000 programs at once", "ratio", 1.4, "x native", (WALL,)),
    Ceiling("redirect", "redirect in place", "added_ms", 1, "ms more", (WALL,)),
    Ceiling("brokered", "a brokered cat", "speed", 0.9, "x native", (WALL,), True),
    Ceiling("recorded", "recorded text", "text_mb_per_s", 150, "MB/s", (VALUE,), True),
    Ceiling("recorded", "recorded bytes", "binary_mb_per_s", 150, "MB/s", (VALUE,), True),
    Ceiling("start", "start, package", "package", 5, _PYTHON, (PROCESSOR,)),
    Ceiling("start", "start, binary", "binary", 7, _PYTHON, (PROCESSOR,)),
    Ceiling("start", "size of the binary", "size_mb", 16, "MB", (VALUE,)),
    *(
        Ceiling(
            "start",
            f"start, sigwrap-forward, {form}",
            f"forwarder, {form}",
            limit,
            _PYTHON,
            (PROCESSOR,),
        )
        for form, limit in (("package", 2.5), ("binary", 5))
    ),
    Ceiling("hook", "a hook's answer, binary", "binary_denied", 120, "ms", (WALL,)),
    Ceiling("joined", "a joined command, binary", "binary_joined", 60, "ms", (WALL,)),
    Ceiling("memory", "memory (PSS)", "both_mb", 30, "MB", (VALUE,)),
    Ceiling("sessions", "slowest of 8 sessions", "sigwrap_of_alone", 1.2, "x alone", (WALL,)),
    Ceiling("reading", "report of a million events", "report", 5, "s", (WALL,)),
    Ceiling("reading", "HTML report of a million events", _PAGE, 5, "s", (WALL,)),
    Ceiling("reading", "HTML report of a million events", f"{_PAGE}, memory", 150, "MB", (VALUE,)),
    Ceiling("growth", "an event after a million", "last_of_first", 1.2, "x the first", (VALUE,)),
    Ceiling("decision", "a decision by 200 rules", "us", 10, "µs", (VALUE,)),
)
