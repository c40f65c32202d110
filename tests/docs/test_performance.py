"""docs/performance.md has the figures of the bench as ranges, and a row for every ceiling."""

from __future__ import annotations

import re

from tests.bench.ceilings import CEILINGS
from tests.bench.results import Compared, Result
from tests.bench.setting import BINARY
from tests.bench.table import BEGIN, BESIDE, DOCUMENT, END, section

_FIGURE = r"(?:-|<1 µs|\d[\d.]*(?:-\d[\d.]*)?(?: (?:s|ms|µs))?)"


def _figures() -> str:
    return DOCUMENT.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]


def _rows(header: str, text: str) -> list[list[str]]:
    (table,) = re.findall(rf"^{re.escape(header)}\n\|[ -|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]


def test_the_page_has_a_row_for_every_ceiling() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert str(BINARY.parent) not in text and "/tmp/" not in text and "/home/" not in text
    rows = _rows("| what | ceiling | measured | met |", _figures())
    assert [(what, ceiling) for what, ceiling, *_ in rows] == [
        (each.what, each.words) for each in CEILINGS
    ]
    assert {met for *_, met in rows} <= {
        "yes",
        "no",
        "-",
        "by elapsed time only",
        "by processor time only",
    }


def test_the_page_compares_each_workload_with_the_peers() -> None:
    for kind in ("operation", "job"):
        rows = _rows(f"| {kind} | {' | '.join(BESIDE)} |", _figures())
        assert len(rows) >= 4
        assert all(re.fullmatch(_FIGURE, cell) for row in rows for cell in row[1:]), rows


def test_a_figure_is_a_range_from_elapsed_to_processor_time() -> None:
    def compared(name: str, wall: float, processor: float) -> Compared:
        figure = {"wall": wall, "processor": processor}
        return Compared(name=name, time_us=figure, ratio=figure, added_us=figure)

    subjects = [compared("native", 1, 1), compared("sigwrap", 1234, 2345)]
    result = Result(key="exec", name="an exec", unit="exec", subjects=subjects)
    machine = {"processors": 2, "linux": "6.18", "python": "3.11"}
    text = section({"machine": machine, "results": [result.as_document()]})
    assert "| an exec | 1.2-2.3 ms | - | - | - |" in text
