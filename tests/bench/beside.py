"""Lines of which each says its own wall time, beside each other, without their wrappers' starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.bench.measuring import TOO_LONG_S, Cost, Failed, Subject, interleaved, run
from tests.bench.results import Result, compared

_NOTHING = ("true",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    prefix: tuple[str, ...] = ()
    words: tuple[str, ...]
    folder: Path | None = None
    most_s: float = TOO_LONG_S


def beside(
    key: str,
    name: str,
    lines: Mapping[str, Line],
    *,
    rounds: int,
    unit: str,
    units: int = 1,
    left_out: Callable[[str, Failed], None] | None = None,
) -> Result:
    """Wall time is what the work says of itself; of processor time, what the same prefix takes for
    nothing at all in the same round is taken off."""
    subjects: dict[str, Subject] = {}
    for subject, line in lines.items():
        subjects[subject] = _work(line)
        subjects[_start_of(subject)] = _start(line)
    costs = interleaved(subjects, rounds, left_out)
    works = {
        subject: [
            Cost(whole.wall_s, whole.processor_s - start.processor_s)
            for whole, start in zip(costs[subject], costs[_start_of(subject)], strict=True)
        ]
        for subject in lines
        if subject in costs and _start_of(subject) in costs
    }
    return compared(key, name, works, unit=unit, units=units)


def _start_of(subject: str) -> str:
    return f"{subject}: start"


def _work(line: Line) -> Callable[[], Cost]:
    words, most_s = (*line.prefix, *line.words), line.most_s
    return lambda: run(words, folder=line.folder, says_wall=True, most_s=most_s)


def _start(line: Line) -> Callable[[], Cost]:
    return lambda: run((*line.prefix, *_NOTHING))
