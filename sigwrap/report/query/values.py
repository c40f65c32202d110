"""Anything of a payload as a value that SQLite keeps."""

from __future__ import annotations

import json

Value = str | int | float | bytes | None

_INT64 = 1 << 63


def integer(value: object) -> int | None:
    return int(value) if isinstance(value, int) and -_INT64 <= value < _INT64 else None


def words(value: object) -> str | None:
    """SQLite's text is UTF-8: a byte that was none is written as Python writes it, `\\udcff`."""
    if value is None:
        return None
    text = value if isinstance(value, str) else as_json(value)
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def as_json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def optional_json(value: object) -> str | None:
    return None if value is None else as_json(value)
