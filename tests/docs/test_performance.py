"""The page of what a run costs has the figures of the bench, beside the ceilings that it knows."""

from __future__ import annotations

import re

from tests.bench.ceilings import CEILINGS
from tests.bench.setting import BINARY
from tests.bench.table import BEGIN, DOCUMENT, END, HEADER, as_markdown


def test_the_page_has_a_row_for_every_ceiling() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert str(BINARY.parent) not in text and "/tmp/" not in text and "/home/" not in text
    found = text.partition(BEGIN)[2].partition(END)[0]
    header = as_markdown(HEADER, [])
    table = found.partition(header)[2].partition("\n\n")[0]
    rows = re.findall(r"^\| (.*?) \| (.*?) \| .*? \| .*? \| (.*?) \|$", table, re.MULTILINE)
    assert [(what, ceiling) for what, ceiling, _ in rows] == [
        (each.what, each.words) for each in CEILINGS
    ]
    assert {met for *_, met in rows} <= {"yes", "no", "-", "by wall only", "by processor only"}
