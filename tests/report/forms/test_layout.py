from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwrap.report.forms.layout import columns_of, cut, wrapped
from sigwrap.text import printable

LINES = st.text().map(printable)
COLUMNS = st.integers(min_value=16, max_value=120)


@given(LINES, COLUMNS)
def test_no_row_is_wider_than_the_terminal_and_nothing_is_lost(line: str, columns: int) -> None:
    rows = list(wrapped(line, columns, "  "))
    assert max(map(columns_of, rows), default=0) <= columns
    assert "".join(rows).replace(" ", "") == line.replace(" ", "")


@given(LINES, COLUMNS)
def test_a_line_that_is_cut_fits(line: str, columns: int) -> None:
    assert columns_of(cut(line, columns)) <= columns


@pytest.mark.parametrize("line", ["", "a " * 100])
def test_without_a_width_a_line_stays_as_it_is(line: str) -> None:
    assert list(wrapped(line, 0)) == [line] == [cut(line, 0)]


def test_a_line_is_broken_between_words() -> None:
    assert list(wrapped("one two three four five", 16, "  ")) == ["one two three", "  four five"]
