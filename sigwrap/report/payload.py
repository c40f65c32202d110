"""A field of a payload, as the type that a reader needs: a log from elsewhere may hold anything."""

from __future__ import annotations


def texts(value: object) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else []


def number(value: object) -> int:
    return value if isinstance(value, int) else 0
