"""The page of what a run costs has the figures of the bench, beside the ceilings that it knows."""

from __future__ import annotations

import math
import re
from pathlib import Path

from tests.bench.ceilings import CEILINGS
from tests.bench.results import Result
from tests.bench.setting import BINARY
from tests.bench.table import (
    BEGIN,
    DOCUMENT,
    END,
    HEADER,
    as_markdown,
    of_ceilings,
    results_of,
    section,
    with_section,
)

ROOT = Path(__file__).parents[2]


def test_the_page_has_a_row_for_every_ceiling() -> None:
    found = DOCUMENT.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    header = as_markdown(HEADER, [])
    table = found.partition(header)[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (.*?) \| (.*?) \| .*? \| .*? \| (.*?) \|$", table, re.MULTILINE)
    assert [(what, ceiling) for what, ceiling, _ in rows] == [
        (each.what, each.words) for each in CEILINGS
    ]
    assert {met for *_, met in rows} <= {"yes", "no", "-", "by wall only", "by processor only"}


def test_the_readme_leads_to_the_page() -> None:
    assert "](docs/performance.md)" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_what_was_not_measured_has_a_row_without_a_verdict() -> None:
    assert {row[1:] for row in of_ceilings({})} == {
        (each.words, "-", "-", "-") for each in CEILINGS
    }


def test_a_ceiling_on_both_kinds_of_time_says_which_keeps_to_it() -> None:
    ceiling = next(each for each in CEILINGS if each.key == "exec" and each.figure == "ratio")
    verdicts = [
        ceiling.verdict({"wall": wall, "processor": processor})
        for wall, processor in ((1.3, 1.3), (1.3, 1.5), (1.5, 1.3), (1.5, 1.5), (math.nan, 1.3))
    ]
    assert verdicts == ["yes", "by wall only", "by processor only", "no", "by processor only"]


def test_a_section_is_written_from_what_was_measured_alone() -> None:
    result = Result(key="memory", name="memory", figures={"both_mb": {"value": 26.2}})
    document = {
        "machine": {"processors": 2, "linux": "6.18", "python": "3.11.2"},
        "results": [result.as_document()],
    }
    assert results_of(document) == {"memory": result}
    written = section(document)
    assert "| supervisor and front process (PSS) | ≤ 30 MB | 26.20 | - | yes |\n" in written
    text = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert with_section(text, written) == f"before\n{BEGIN}\n\n{written}\n{END}\nafter\n"


def test_the_page_names_no_machine() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert str(BINARY.parent) not in text and "/tmp/" not in text and "/home/" not in text
