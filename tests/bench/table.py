"""Tables of measurements and ceilings, as text and in docs/performance.md.

`python -m tests.bench.table --write bench.json …` writes the figures of these runs into the
document.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.bench.ceilings import CEILINGS, Ceiling
from tests.bench.measuring import PROCESSOR, VALUE, WALL, Figure
from tests.bench.results import OURS, Compared, Result
from tests.bench.setting import ROOT
from tests.bench.steps import HEATS, TIMES

DOCUMENT = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
HEADER = ("what", "ceiling", "wall", "processor", "met")
FIGURES = ("", "wall or value", "processor")
STEPS = ("step", "times", "hot", "cold")
SUBJECTS = ("", "wall", "ratio", "added", "processor", "ratio", "added")
OF_OPERATIONS, OF_JOBS = (OURS, "strace", "sandlock"), (OURS, "strace", "sudo")
BUSY = (OURS, "strace")
HEADER_BUSY = tuple(f"{each}, busy" for each in BUSY)
MOST_NOISE = 0.1
OPERATIONS = {"exec", "signal", "call", "probe"}

Row = tuple[str, ...]


def of_ceilings(results: Mapping[str, Result], *, all_: bool = True) -> list[Row]:
    """Return a row per ceiling; with `all_` also those that were not measured."""
    return [_row(each, results) for each in CEILINGS if all_ or each.found(results)]


def _row(ceiling: Ceiling, results: Mapping[str, Result]) -> Row:
    found = ceiling.found(results)
    wall = found.get(WALL, found.get(VALUE))
    verdict = ceiling.verdict(_values(ceiling, [results]))
    return (ceiling.what, ceiling.words, _number(wall), _number(found.get(PROCESSOR)), verdict)


def of(result: Result) -> tuple[Row, list[Row]]:
    """Return the header and the rows of a result."""
    if result.subjects:
        return SUBJECTS, of_subjects(result)
    if result.key in {"steps", "signal_steps"}:
        return STEPS, of_steps(result)
    return FIGURES, of_figures(result)


def of_subjects(result: Result) -> list[Row]:
    return [
        (
            each.name,
            _time(each.time_us, WALL),
            _number(each.ratio[WALL]),
            _time(each.added_us, WALL),
            _time(each.time_us, PROCESSOR),
            _number(each.ratio[PROCESSOR]),
            _time(each.added_us, PROCESSOR),
        )
        for each in result.subjects
    ]


def of_figures(result: Result) -> list[Row]:
    """Return the rows of a result without subjects."""
    return [
        (name, _number(found.get(WALL, found.get(VALUE))), _number(found.get(PROCESSOR)))
        for name, found in result.figures.items()
    ]


def of_steps(result: Result) -> list[Row]:
    return [
        (name, _number(found[TIMES]), *(_time(found, heat) for heat in HEATS))
        for name, found in result.figures.items()
    ]


def as_text(header: Sequence[str], rows: Sequence[Row]) -> str:
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    lines = []
    for row in (header, *rows):
        cells = [
            cell.ljust(width) if not number else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("    " + "  ".join(cells).rstrip())
    return "\n".join(lines)


def as_markdown(header: Sequence[str], rows: Sequence[Row]) -> str:
    rule = ("---",) * len(header)
    return "".join(f"| {' | '.join(row)} |\n" for row in (header, rule, *rows))


Run = Mapping[str, Result]


def section(documents: Sequence[Mapping[str, Any]]) -> str:
    """Return the figures of several runs. Ranges cover all runs, by elapsed and processor time."""
    machine = documents[0]["machine"]
    runs: tuple[list[Run], list[Run]] = ([], [])
    loads: tuple[list[float], list[float]] = ([], [])
    for each in documents:
        is_busy = each["machine"]["is_busy"]
        runs[is_busy].append(results_of(each))
        loads[is_busy].append(statistics.median(each["machine"]["loads"]))
    quiet, busy = (
        f"{len(a)} run{'s'[: len(a) != 1]} with load {_range(b)}"
        for a, b in zip(runs, loads, strict=True)
    )
    return "\n".join(
        (
            f"Measured with {machine['processors']} processors, Linux {machine['linux']}, "
            f"Python {machine['python']}: {quiet} (quiet), {busy} (busy).\n",
            *_details(*runs),
            "### Goals\n",
            as_markdown(("what", "goal", "measured", "met"), _goals([*runs[0], *runs[1]])),
        )
    )


def _details(quiet: Sequence[Run], busy: Sequence[Run]) -> Iterator[str]:
    known = {key: result for run in (*quiet, *busy) for key, result in run.items()}
    results = list(known.values())
    beside = [each for each in results if OURS in _by_name(each)]
    operations = [each for each in beside if each.unit in OPERATIONS]
    jobs = [each for each in beside if each not in operations]

    def rows(of: list[Result], names: Row, kind: str, unit: str = "") -> list[Row]:
        return [
            (
                _marked(each, (*quiet, *busy)),
                *(_found(quiet, each.key, name, kind, unit) for name in names),
                *(_found(busy, each.key, name, kind, unit) for name in BUSY),
            )
            for each in of
        ]

    yield "### Time added to one operation\n"
    header = ("operation", *OF_OPERATIONS, *HEADER_BUSY)
    yield as_markdown(header, rows(operations, OF_OPERATIONS, "added_us", "µs"))
    yield "### Whole jobs, as a multiple of native\n"
    yield as_markdown(("job", *OF_JOBS, *HEADER_BUSY), rows(jobs, OF_JOBS, "ratio"))
    yield "### Start and end of `true`\n"
    starts = known["start"].subjects if "start" in known else []
    runs = (*quiet, *busy)
    found = [(each.name, _found(runs, "start", each.name, "time_us", "µs")) for each in starts]
    yield as_markdown(("program", "time"), found)


def _by_name(result: Result) -> dict[str, Compared]:
    return {each.name: each for each in result.subjects}


def _found(runs: Iterable[Run], key: str, name: str, kind: str, unit: str = "") -> str:
    """Return the range of a subject's figures over the runs."""
    subjects = [found for run in runs if key in run and (found := _by_name(run[key]).get(name))]
    return _range((value for each in subjects for value in getattr(each, kind).values()), unit)


def _marked(result: Result, runs: Iterable[Run]) -> str:
    """Return its name, with an asterisk if the machine was too noisy in a run."""
    noise = max(run[result.key].noise for run in runs if result.key in run)
    return f"{result.name} \\*" if noise > MOST_NOISE else result.name


def _goals(runs: Sequence[Run]) -> list[Row]:
    return [
        (each.what, each.words, _span(values, "{:.3g}".format), each.verdict(values))
        for each in CEILINGS
        for values in [_values(each, runs)]
    ]


def _values(ceiling: Ceiling, runs: Iterable[Run]) -> list[float]:
    """Return the figures that the ceiling is about, of each run."""
    found = (ceiling.found(run) for run in runs)
    return [each[kind] for each in found for kind in ceiling.counts if kind in each]


def _range(values: Iterable[float], unit: str = "") -> str:
    """Return the lowest and highest value with two digits, and the unit."""
    known = sorted(each for each in values if not math.isnan(each))
    if not known:
        return "-"
    if unit and abs(known[-1]) < 1:
        return f"<1 {unit}"
    per, unit = next(((n, u) for n, u in _LARGER if unit and known[-1] >= n), (1, unit))
    span = _span((max(each, 0.0) / per for each in known), _two_digits)
    return f"{span} {unit}" if unit else span


def _span(values: Iterable[float], written: Callable[[float], str]) -> str:
    """Return the lowest and the highest, or one of them if they look the same."""
    known = sorted(each for each in values if not math.isnan(each))
    return "-".join(dict.fromkeys(map(written, (*known[:1], *known[-1:])))) or "-"


_LARGER = ((1e6, "s"), (1e3, "ms"))


def _two_digits(value: float) -> str:
    digits = 2 if value < 1 else 1 if value < 10 else 0 if value < 100 else -1
    return f"{round(value, digits):.{max(digits, 0)}f}"


def results_of(document: Mapping[str, Any]) -> dict[str, Result]:
    return {each["key"]: Result.of(each) for each in document["results"]}


def with_section(text: str, written: str) -> str:
    """Return the document with its section replaced."""
    pattern = f"{re.escape(BEGIN)}\n.*{re.escape(END)}\n"
    return re.sub(pattern, lambda _: f"{BEGIN}\n\n{written}\n{END}\n", text, flags=re.DOTALL)


def _time(found: Figure, kind: str) -> str:
    us = found[kind]
    if math.isnan(us):
        return "-"
    for per, unit in ((1e6, "s"), (1e3, "ms")):
        if abs(us) >= per:
            return f"{us / per:.3g} {unit}"
    return f"{us:.2f} µs" if abs(us) < 10 else f"{us:.0f} µs"


def _number(value: float | None) -> str:
    if value is None or math.isnan(value):
        return "-"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.2f}"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("runs", type=Path, nargs="*", default=[ROOT / "bench.json"])
    options.add_argument("--write", action="store_true")
    chosen = options.parse_args()
    documents = [json.loads(each.read_text()) for each in chosen.runs]
    written = section(documents)
    if chosen.write and any(each["is_quick"] for each in documents):
        options.error("a quick run has no usable figures")
    if chosen.write:
        DOCUMENT.write_text(with_section(DOCUMENT.read_text(), written))
    else:
        sys.stdout.write(written)


if __name__ == "__main__":
    main()
