from __future__ import annotations

import csv
import json
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from sigwrap.report.query import forms
from sigwrap.report.query.values import Value

texts = st.text(max_size=8)
values = (
    st.none()
    | texts
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.floats(allow_nan=False)
    | st.binary(max_size=3)
)
rows_of_two = st.lists(st.tuples(values, values), max_size=5)
NAMES = ("a", "b")


def test_a_table_has_numbers_on_the_right_and_nothing_for_null() -> None:
    rows = [("x", 5), ("longer", -1234), (None, None)]
    assert list(forms.table(("name", "count"), rows)) == [
        "name    count",
        "──────  ─────",
        "x           5",
        "longer  -1234",
        "",
    ]


def test_a_table_of_long_cells_begins_before_many_of_them_are_read() -> None:
    read = 0

    def rows() -> Iterator[tuple[Value, ...]]:
        nonlocal read
        for _ in range(100):
            read += 1
            yield ("x" * (1 << 20),)

    lines = forms.table(("a",), rows())
    next(lines)
    assert 1 < read < 10
    assert sum(1 for _ in lines) == 101


def test_on_a_terminal_the_widest_cells_are_cut_and_in_a_pipe_none_is() -> None:
    rows = [("short", "w" * 100, "v" * 100)]
    narrow = list(forms.table(("a", "b", "c"), rows, columns=40))
    assert all(len(line) <= 40 for line in narrow)
    assert narrow[-1].startswith("short  www")
    assert narrow[-1].count("…") == 2
    assert "w" * 100 in list(forms.table(("a", "b", "c"), rows))[-1]


@given(rows_of_two, st.integers(0, 80))
def test_no_cell_of_a_table_reaches_the_terminal_as_it_is(
    rows: list[tuple[Value, ...]], columns: int
) -> None:
    lines = list(forms.table(("a\x1b", "b"), rows, columns))
    assert len(lines) == 2 + len(rows)
    assert all(line.isprintable() for line in lines)


@given(rows_of_two)
def test_a_reader_of_csv_finds_every_text_save_what_would_be_a_formula(
    rows: list[tuple[Value, ...]],
) -> None:
    written = "".join(f"{line}\n" for line in forms.csv(NAMES, rows))
    if "\0" in written:
        return  # Python 3.11's reader takes none
    read = list(csv.reader(_lines_kept(written)))
    assert read[0] == list(NAMES)
    for row, cells in zip(rows, read[1:], strict=True):
        for value, cell in zip(row, cells, strict=True):
            shown = forms._text(value)
            assert cell in (shown, f"'{shown}")
            assert not (isinstance(value, str) and cell.startswith(("=", "+", "-", "@")))


def _lines_kept(text: str) -> list[str]:
    """As a file that was opened with newline=""."""
    return [f"{line}\n" for line in text.removesuffix("\n").split("\n")]


def test_csv_guards_texts_and_leaves_numbers() -> None:
    rows: list[tuple[Value, ...]] = [("=cmd|' /C calc'!A0", -5), ("-rf", -1.5), (None, b"\x00")]
    assert list(forms.csv(NAMES, rows)) == ["a,b", "'=cmd|' /C calc'!A0,-5", "'-rf,-1.5", ",00"]
    assert list(forms.csv(NAMES, [("\x1b[2J", "")], to_terminal=True))[1] == "\\e[2J,"


@given(rows_of_two)
def test_json_is_json_with_one_object_a_row(rows: list[tuple[Value, ...]]) -> None:
    array = "\n".join(forms.json_array(NAMES, rows))
    lines = list(forms.json_lines(NAMES, rows))
    assert array.isascii()
    assert json.loads(array) == [json.loads(line) for line in lines]
    assert len(lines) == len(rows)


def test_a_second_column_of_a_name_has_one_of_its_own() -> None:
    (line,) = forms.json_lines(("a", "a", "a_2"), [(1, 2, 3)])
    assert json.loads(line) == {"a": 1, "a_2": 2, "a_2_2": 3}
