"""docs/performance.md has the figures of several runs as ranges, and a row for every goal."""

from __future__ import annotations

import re

from tests.bench.ceilings import CEILINGS
from tests.bench.results import Compared, Result
from tests.bench.setting import BINARY
from tests.bench.table import (
    BEGIN,
    DOCUMENT,
    END,
    HEADER_BUSY,
    OF_JOBS,
    OF_OPERATIONS,
    section,
)

_FIGURE = r"(?:-|<1 µs|\d[\d.]*(?:-\d[\d.]*)?(?: (?:s|ms|µs))?)"
_MET = r"yes|no|-|\d+ of \d+"


def _figures() -> str:
    return DOCUMENT.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]


def _rows(header: str, text: str) -> list[list[str]]:
    (table,) = re.findall(rf"^{re.escape(header)}\n\|[ -|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def test_the_page_has_a_row_for_every_goal() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert str(BINARY.parent) not in text and "/tmp/" not in text and "/home/" not in text
    rows = _rows("| what | goal | measured | met |", _figures())
    assert [(what, goal) for what, goal, *_ in rows] == [
        (each.what, each.words) for each in CEILINGS
    ]
    assert all(re.fullmatch(_MET, met) for *_, met in rows)


def test_the_page_compares_each_workload_with_the_peers() -> None:
    for kind, names in (("operation", OF_OPERATIONS), ("job", OF_JOBS)):
        rows = _rows(f"| {kind} | {' | '.join((*names, *HEADER_BUSY))} |", _figures())
        assert len(rows) >= 4
        assert all(re.fullmatch(_FIGURE, cell) for row in rows for cell in row[1:]), rows


def test_a_figure_is_the_range_of_all_runs_by_elapsed_and_processor_time() -> None:
    def compared(name: str, wall: float, processor: float) -> Compared:
        figure = {"wall": wall, "processor": processor}
        return Compared(name=name, time_us=figure, ratio=figure, added_us=figure)

    def run(
        wall: float, processor: float, *, is_busy: bool, ratio: float, noise: float = 0.1
    ) -> dict[str, object]:
        subjects = [compared("native", 1, 1), compared("sigwrap", wall, processor)]
        figures = {"of_strace": {"wall": ratio, "processor": 0.5}}
        result = Result(
            key="exec", name="an exec", unit="exec", noise=noise, subjects=subjects, figures=figures
        )
        machine = {"processors": 2, "linux": "6.18", "python": "3.11", "is_busy": is_busy}
        return {"machine": {**machine, "loads": [0.5]}, "results": [result.as_document()]}

    runs = [
        run(1234, 2345, is_busy=False, ratio=0.7),
        run(3456, 1111, is_busy=False, ratio=0.9),
        run(8000, 9000, is_busy=True, ratio=0.6),
    ]
    text = section(runs)
    assert "| an exec | 1.1-3.5 ms | - | - | 8.0-9.0 ms | - |" in text
    assert "| ≤ 0.8 x strace's | 0.5-0.9 | 5 of 6 |" in text
    assert "2 runs with load 0.50 (quiet), 1 run with load 0.50 (busy)" in text
    noisy = run(3456, 1111, is_busy=False, ratio=0.9, noise=0.2)
    assert "| an exec \\* | 1.1-3.5 ms |" in section([*runs, noisy])
