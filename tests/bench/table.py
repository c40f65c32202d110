"""Tables of measurements and ceilings, as text and in docs/performance.md.

`python -m tests.bench.table --write` writes the figures of bench.json into the document.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
STEPS = ("step", "times an exec", "hot", "cold")
SUBJECTS = ("", "wall", "ratio", "added", "processor", "ratio", "added")
BESIDE = (OURS, "strace", "sudo", "sandlock")
AUDIT = ("allowed", "audited")
OPERATIONS = {"exec", "signal", "call", "probe"}

Row = tuple[str, ...]


def of_ceilings(results: Mapping[str, Result], *, all_: bool = True) -> list[Row]:
    """Return a row per ceiling; with `all_` also those that were not measured."""
    return [_row(each, results) for each in CEILINGS if all_ or each.found(results)]


def _row(ceiling: Ceiling, results: Mapping[str, Result]) -> Row:
    found = ceiling.found(results)
    wall = found.get(WALL, found.get(VALUE))
    verdict = ceiling.verdict(found)
    return (ceiling.what, ceiling.words, _number(wall), _number(found.get(PROCESSOR)), verdict)


def of(result: Result) -> tuple[Row, list[Row]]:
    """Return the header and the rows of a result."""
    if result.subjects:
        return SUBJECTS, of_subjects(result)
    if result.key == "steps":
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


def section(document: Mapping[str, Any]) -> str:
    """Return the figures of the document, as ranges from elapsed to processor time."""
    results = results_of(document)
    machine = document["machine"]
    return "\n".join(
        (
            f"Measured with {machine['processors']} processors, Linux {machine['linux']}, "
            f"Python {machine['python']}.\n",
            *_details(results.values()),
            "### Ceilings\n",
            as_markdown(("what", "ceiling", "measured", "met"), _short(results)),
        )
    )


def _details(results: Iterable[Result]) -> Iterator[str]:
    beside = [each for each in results if OURS in _by_name(each)]
    operations = [each for each in beside if each.unit in OPERATIONS]
    yield "### Time added to one operation\n"
    rows = [(each.name, *_added(each, BESIDE)) for each in operations]
    yield as_markdown(("operation", *BESIDE), rows)
    yield "### Whole jobs, as a multiple of native\n"
    rows = [(each.name, *_ratios(each, BESIDE)) for each in beside if each not in operations]
    yield as_markdown(("job", *BESIDE), rows)
    yield "### File rules, time added to one operation\n"
    rows = [(each.name, *_added(each, AUDIT)) for each in results if AUDIT[0] in _by_name(each)]
    yield as_markdown(("operation", *AUDIT), rows)
    yield "### Start and end of `true`\n"
    starts = next((each.subjects for each in results if each.key == "start"), [])
    rows = [(each.name, _range(each.time_us, "µs")) for each in starts]
    yield as_markdown(("program", "time"), rows)


def _by_name(result: Result) -> dict[str, Compared]:
    return {each.name: each for each in result.subjects}


def _added(result: Result, names: Iterable[str]) -> Iterator[str]:
    found = _by_name(result)
    return (_range(found[each].added_us, "µs") if each in found else "-" for each in names)


def _ratios(result: Result, names: Iterable[str]) -> Iterator[str]:
    found = _by_name(result)
    return (_range(found[each].ratio) if each in found else "-" for each in names)


def _short(results: Mapping[str, Result]) -> list[Row]:
    return [
        (each.what, each.words, _counted(each, found), each.verdict(found))
        for each in CEILINGS
        for found in [each.found(results)]
    ]


def _counted(ceiling: Ceiling, found: Figure) -> str:
    """Return the figures that the ceiling is about."""
    numbers = [_number(found.get(each)) for each in ceiling.counts]
    known = sorted({each for each in numbers if each != "-"}, key=float)
    return "-".join(known) or "-"


def _range(found: Figure, unit: str = "") -> str:
    """Return the lowest and highest value with two digits, and the unit."""
    values = sorted(each for each in found.values() if not math.isnan(each))
    if not values:
        return "-"
    if unit and abs(values[-1]) < 1:
        return f"<1 {unit}"
    per, unit = next(((n, u) for n, u in _LARGER if unit and values[-1] >= n), (1, unit))
    low, high = (_two_digits(max(each, 0.0) / per) for each in (values[0], values[-1]))
    return (low if low == high else f"{low}-{high}") + (f" {unit}" if unit else "")


_LARGER = ((1e6, "s"), (1e3, "ms"))


def _two_digits(value: float) -> str:
    digits = 1 if value < 10 else 0 if value < 100 else -1
    text = f"{round(value, digits):.{max(digits, 0)}f}"
    return text if value >= 0.1 or not value else f"{value:.2f}"


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
    options.add_argument("--from", dest="source", type=Path, default=ROOT / "bench.json")
    options.add_argument("--write", action="store_true")
    chosen = options.parse_args()
    document = json.loads(chosen.source.read_text())
    written = section(document)
    if chosen.write and document["is_quick"]:
        options.error("a quick run has no usable figures")
    if chosen.write:
        DOCUMENT.write_text(with_section(DOCUMENT.read_text(), written))
    else:
        sys.stdout.write(written)


if __name__ == "__main__":
    main()
