from __future__ import annotations

import re

import pytest

from sigwrap.cli.query import overview
from sigwrap.events import EVENT_TYPES
from sigwrap.log.schema import EXPORTED, VIEWS
from sigwrap.report.query import SEARCHED
from tests.docs.log_tables import EVENTS, FIELDS, QUERY, with_types, with_views

AGAIN = "run python -m tests.docs.log_tables --write"


def test_the_pages_have_the_types_and_views_of_today() -> None:
    events, query = EVENTS.read_text(encoding="utf-8"), QUERY.read_text(encoding="utf-8")
    assert with_types(events) == events, AGAIN
    assert with_views(query) == query, AGAIN
    for page in (events, query):
        assert not re.findall(r"^\| `[^|]*\| (?:\*\w+\* )?\s*\|", page, re.M), "no meaning"
    exported = ", ".join(f"`{column.name}`" for column in EXPORTED.columns)
    searched = ", ".join(f"`{name}`" for name in SEARCHED)
    assert exported in query and searched in query


def test_each_field_with_a_note_is_in_an_event() -> None:
    noted = EVENTS.read_text(encoding="utf-8").partition(FIELDS)[2]
    fields = {field for kind in EVENT_TYPES.values() for field in kind.fields}
    found = set(re.findall("^- `(.*?)`:", noted, re.MULTILINE))
    assert "fallback" in found and found <= fields


@pytest.mark.parametrize("columns", [60, 200])
def test_the_overview_has_every_view_and_column_and_fits_the_terminal(columns: int) -> None:
    lines = list(overview(columns))
    assert all(len(line) <= columns for line in lines[: lines.index("")])
    words = " ".join(lines)
    for view in VIEWS.values():
        assert all(column.name in words for column in view.columns) and f"{view.name}: " in words
