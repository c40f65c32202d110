"""A result as a table for people, CSV for spreadsheets, or JSON for programs.

All of them are made row by row, whatever the number of rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from sigwrap.escape import printable, shortened

Value = str | int | float | bytes | None
Row = tuple[Value, ...]

_ROWS_MEASURED = 1_000  # what comes later may be wider than its column
_CHARACTERS_MEASURED = 4 << 20
_WIDEST_PADDED = 60  # in a file or a pipe, where nothing is cut
_NARROWEST = 6
_BETWEEN = "  "
# What a spreadsheet takes for a formula, which a process could so have run by whoever opens it.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def table(names: tuple[str, ...], rows: Iterable[Row], columns: int = 0) -> Iterator[str]:
    """`columns`: of the terminal, where cells are cut; 0: nothing is."""
    rows = iter(rows)
    shown = _measured(rows)
    heads = [printable(name) for name in names]
    widths = [
        max(len(head), *(len(cells[at]) for cells in shown)) if shown else len(head)
        for at, head in enumerate(heads)
    ]
    widths = _fitted(widths, columns) if columns else [min(w, _WIDEST_PADDED) for w in widths]
    numeric = [_is_numeric(shown, at) for at in range(len(heads))]
    yield _line(heads, widths, numeric, columns)
    yield _BETWEEN.join("─" * width for width in widths)
    for cells in chain(shown, map(_cells, rows)):
        yield _line(cells, widths, numeric, columns)


def _measured(rows: Iterator[Row]) -> list[list[str]]:
    """The first of them, as far as they fit into memory."""
    shown, characters = [], 0
    for row in islice(rows, _ROWS_MEASURED):
        shown.append(_cells(row))
        characters += sum(map(len, shown[-1]))
        if characters > _CHARACTERS_MEASURED:
            break
    return shown


def _fitted(widths: list[int], columns: int) -> list[int]:
    """The widest columns give way, down to what still says something."""
    room = columns - len(_BETWEEN) * (len(widths) - 1)
    fitted = list(widths)
    by_width = sorted(range(len(widths)), key=lambda at: widths[at])
    for position, at in enumerate(by_width):
        share = max(room // (len(by_width) - position), _NARROWEST)
        fitted[at] = min(widths[at], share)
        room -= fitted[at]
    return fitted


def _cells(row: Row) -> list[str]:
    return [printable(_text(value)) for value in row]


def _is_numeric(shown: list[list[str]], at: int) -> bool:
    return any(cells[at] for cells in shown) and all(
        not cells[at] or _is_number(cells[at]) for cells in shown
    )


def _is_number(cell: str) -> bool:
    return cell.lstrip("-").replace(".", "", 1).isdecimal()


def _line(cells: list[str], widths: list[int], numeric: list[bool], columns: int) -> str:
    padded = (
        _padded(cell if not columns else shortened(cell, width), width, right)
        for cell, width, right in zip(cells, widths, numeric, strict=True)
    )
    return _BETWEEN.join(padded).rstrip()


def _padded(cell: str, width: int, right: bool) -> str:
    return cell.rjust(width) if right else cell.ljust(width)


def csv(names: tuple[str, ...], rows: Iterable[Row], *, to_terminal: bool = False) -> Iterator[str]:
    for row in chain((names,), rows):
        cells = map(_csv_cell, row)
        yield ",".join(map(printable, cells) if to_terminal else cells)


def _csv_cell(value: Value) -> str:
    text = _text(value)
    if isinstance(value, str) and text.startswith(_FORMULA):
        text = "'" + text
    if any(mark in text for mark in ',"\r\n') or text != text.strip():
        return '"' + text.replace('"', '""') + '"'
    return text


def json_array(names: tuple[str, ...], rows: Iterable[Row]) -> Iterator[str]:
    line = "["
    for each in json_lines(names, rows):
        if line != "[":
            line += ","
        yield line
        line = each
    if line == "[":
        yield "[]"
    else:
        yield line
        yield "]"


def json_lines(names: tuple[str, ...], rows: Iterable[Row]) -> Iterator[str]:
    keys = _distinct(names)
    for row in rows:
        values = dict(zip(keys, map(_json_value, row), strict=True))
        yield json.dumps(values, separators=(",", ":"), allow_nan=False)


def _distinct(names: tuple[str, ...]) -> list[str]:
    """A second column of a name would take the place of the first."""
    keys: list[str] = []
    taken: set[str] = set()
    for name in names:
        key, number = name, 2
        while key in taken:
            key, number = f"{name}_{number}", number + 1
        taken.add(key)
        keys.append(key)
    return keys


def _text(value: Value) -> str:
    if value is None:
        return ""
    return value.hex() if isinstance(value, bytes) else str(value)


def _json_value(value: Value) -> str | int | float | None:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return None  # JSON has no such number
    return value
