"""What was measured, beside its ceilings, as text; and in docs/performance.md.

`python -m tests.bench.table --write` puts what bench.json has into the document.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.bench.ceilings import CEILINGS, Ceiling
from tests.bench.measuring import PROCESSOR, VALUE, WALL, Figure
from tests.bench.results import Result
from tests.bench.setting import ROOT
from tests.bench.steps import HEATS, TIMES

DOCUMENT = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"
HEADER = ("what", "ceiling", "wall", "processor", "met")
FIGURES = ("", "wall or value", "processor")
STEPS = ("step", "times an exec", "hot", "cold")
SUBJECTS = ("", "wall", "ratio", "added", "processor", "ratio", "added")

Row = tuple[str, ...]


def of_ceilings(results: Mapping[str, Result], *, all_: bool = True) -> list[Row]:
    """`all_`: also of what was not measured."""
    return [_row(each, results) for each in CEILINGS if all_ or each.found(results)]


def _row(ceiling: Ceiling, results: Mapping[str, Result]) -> Row:
    found = ceiling.found(results)
    wall = found.get(WALL, found.get(VALUE))
    verdict = ceiling.verdict(found)
    return (ceiling.what, ceiling.words, _number(wall), _number(found.get(PROCESSOR)), verdict)


def of(result: Result) -> tuple[Row, list[Row]]:
    """Its header and its rows."""
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
    """Where there are no subjects."""
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
    """All that the document says in figures."""
    results = results_of(document)
    machine = document["machine"]
    return "\n".join(
        (
            f"{machine['processors']} processors, Linux {machine['linux']}, "
            f"Python {machine['python']}.\n",
            as_markdown(HEADER, of_ceilings(results)),
            *_details(results),
        )
    )


def _details(results: Mapping[str, Result]) -> Iterator[str]:
    for result in results.values():
        if result.subjects:
            about = f"times are for one {result.unit}; medians of {result.rounds} rounds"
            yield f"**{result.name}** ({about}):\n"
        elif result.key in ("steps", "reading", "growth", "memory"):
            yield f"**{result.name}**:\n"
        else:
            continue
        yield as_markdown(*of(result))


def results_of(document: Mapping[str, Any]) -> dict[str, Result]:
    return {each["key"]: Result.of(each) for each in document["results"]}


def with_section(text: str, written: str) -> str:
    """The document's text, with another section."""
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
        options.error("figures of a quick run are none")
    if chosen.write:
        DOCUMENT.write_text(with_section(DOCUMENT.read_text(), written))
    else:
        sys.stdout.write(written)


if __name__ == "__main__":
    main()
