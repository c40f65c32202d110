from __future__ import annotations

import json
from collections.abc import Iterator

from sigwrap.report import query
from sigwrap.report.query import Value

NAMES = ("a", "b")


def test_a_table_has_numbers_on_the_right_and_nothing_for_null() -> None:
    rows = [("x", 5), ("longer", -1234), (None, None)]
    assert list(query.table(("name", "count"), rows)) == [
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

    lines = query.table(("a",), rows())
    next(lines)
    assert 1 < read < 10
    assert sum(1 for _ in lines) == 101


def test_on_a_terminal_the_widest_cells_are_cut_and_in_a_pipe_none_is() -> None:
    rows = [("short", "w" * 100, "v" * 100)]
    narrow = list(query.table(("a\x1b", "b", "c"), rows, columns=40))
    assert all(len(line) <= 40 and line.isprintable() for line in narrow)
    assert narrow[-1].startswith("short  www")
    assert narrow[-1].count("…") == 2
    assert "w" * 100 in list(query.table(("a", "b", "c"), rows))[-1]


def test_csv_guards_texts_and_leaves_numbers() -> None:
    rows: list[tuple[Value, ...]] = [("=cmd|' /C calc'!A0", -5), ("-rf", -1.5), (None, b"\x00")]
    assert list(query.csv(NAMES, rows)) == ["a,b", "'=cmd|' /C calc'!A0,-5", "'-rf,-1.5", ",00"]
    assert list(query.csv(NAMES, [("+1", "@x"), ('a"b', "c,d")]))[1:] == ["'+1,'@x", '"a""b","c,d"']
    assert list(query.csv(NAMES, [("\x1b[2J", "")], to_terminal=True))[1] == "\\e[2J,"


def test_json_is_json_with_one_object_a_row() -> None:
    rows: list[tuple[Value, ...]] = [
        (None, -1.5),
        ("\x1b\udcff\u2028é", 1 << 62),
        (b"\0\xff", float("-inf")),  # JSON has no such number
    ]
    array = "\n".join(query.json_array(NAMES, rows))
    lines = list(query.json_lines(NAMES, rows))
    assert array.isascii()
    found = [tuple(json.loads(line).values()) for line in lines]
    assert found == [*rows[:2], ("00ff", None)]
    assert json.loads(array) == [json.loads(line) for line in lines]
    assert json.loads("\n".join(query.json_array(NAMES, []))) == []


def test_a_second_column_of_a_name_has_one_of_its_own() -> None:
    (line,) = query.json_lines(("a", "a", "a_2"), [(1, 2, 3)])
    assert json.loads(line) == {"a": 1, "a_2": 2, "a_2_2": 3}
