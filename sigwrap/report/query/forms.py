"""A result as a table for people, CSV for spreadsheets, or JSON for programs, row by row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain, islice

from sigwrap.escape import printable, shortened

Value = str | int | float | bytes | None
Row = tuple[Value, ...]

_ROWS_MEASURED = 1_000  # a later cell may be wider than its column
_CHARACTERS_MEASURED = 4 << 20
_WIDEST_PADDED = 60  # in a file or a pipe, where no cell is cut
_NARROWEST = 6
_BETWEEN = "  "
# A spreadsheet takes these for a formula, with which a process could run code there.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def table(names: tuple[str, ...], rows: Iterable[Row], columns: int = 0) -> Iterator[str]:
    """`columns`: width of the terminal, to which cells are cut; 0 cuts nothing."""
    rows = iter(rows)
    measured = _measured(rows)
    heads = [printable(name) for name in names]
    found = list(zip(*measured, strict=True)) or [()] * len(heads)
    widths = [max(map(len, (head, *cells))) for head, cells in zip(heads, found, strict=True)]
    widths = _fitted(widths, columns) if columns else [min(w, _WIDEST_PADDED) for w in widths]
    numeric = [any(cells) and all(map(_is_number, filter(None, cells))) for cells in found]

    def line(cells: list[str]) -> str:
        padded = []
        for cell, width, is_right in zip(cells, widths, numeric, strict=True):
            cut = shortened(cell, width) if columns else cell
            padded.append(cut.rjust(width) if is_right else cut.ljust(width))
        return _BETWEEN.join(padded).rstrip()

    yield line(heads)
    yield _BETWEEN.join("─" * width for width in widths)
    yield from map(line, chain(measured, map(_cells, rows)))


def _measured(rows: Iterator[Row]) -> list[list[str]]:
    """Return the first rows, as far as they fit into memory."""
    measured, characters = [], 0
    for row in islice(rows, _ROWS_MEASURED):
        measured.append(_cells(row))
        characters += sum(map(len, measured[-1]))
        if characters > _CHARACTERS_MEASURED:
            break
    return measured


def _fitted(widths: list[int], columns: int) -> list[int]:
    """Narrow the widest columns, but none below _NARROWEST."""
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


def _is_number(cell: str) -> bool:
    return cell.lstrip("-").replace(".", "", 1).isdecimal()


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
        yield line if line == "[" else f"{line},"
        line = each
    yield from ("[]",) if line == "[" else (line, "]")


def json_lines(names: tuple[str, ...], rows: Iterable[Row]) -> Iterator[str]:
    keys = _distinct(names)
    for row in rows:
        values = dict(zip(keys, map(_json_value, row), strict=True))
        yield json.dumps(values, separators=(",", ":"), allow_nan=False)


def _distinct(names: tuple[str, ...]) -> list[str]:
    """Number the columns of one name, because an object has each key once."""
    keys: list[str] = []
    for name in names:
        key, number = name, 2
        while key in keys:
            key, number = f"{name}_{number}", number + 1
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
