"""Parse durations and sizes as people type them: `45s`, `1h30m`, `2w`; `512M`, `1.5G`."""

from __future__ import annotations

from sigwrap.bare import re

SPANS = "45s, 10m, 1h30m, 2d or 2w"  # examples for error messages
SIZES = "64K, 500M or 1G"

_UNITS_S = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_UNITS_BYTES = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}

# A policy's JSON Schema has these patterns too, so they use only syntax of every regex dialect.
_NUMBER = r"[0-9]{1,12}(\.[0-9]{1,9})?"
SPAN_PATTERN = rf"({_NUMBER} ?({'|'.join(_UNITS_S)}) ?)*{_NUMBER} ?({'|'.join(_UNITS_S)})"
SECONDS_PATTERN = rf"({_NUMBER}|{SPAN_PATTERN})"
SIZE_PATTERN = rf"{_NUMBER} ?([KkMmGgTt](i?[Bb])?|[Bb])?"

_PART = rf"(?P<number>{_NUMBER}) ?(?P<unit>[A-Za-z]+)"


def span_s(words: str, *, or_seconds: bool = False) -> float:
    """Return seconds; with `or_seconds`, a number needs no unit. ValueError says what is wrong."""
    if re.fullmatch(_NUMBER, words):
        if or_seconds:
            return float(words)
        units = ", ".join(words + unit for unit in ("s", "m", "h", "d"))
        raise ValueError(f"a duration needs a unit ({units} or {words}w)")
    if not re.fullmatch(SPAN_PATTERN, words):
        raise ValueError(f"not a duration (such as {SPANS})")
    parts = re.finditer(_PART, words)
    return sum(float(part["number"]) * _UNITS_S[part["unit"]] for part in parts)


def size_bytes(words: str) -> int:
    """Return bytes, in the units of ls and du: K, KB and KiB are 1024.

    ValueError says what is wrong.
    """
    if not re.fullmatch(SIZE_PATTERN, words):
        raise ValueError(f"not a size (such as {SIZES})")
    number = words.rstrip("KMGTBkmgtib ")
    unit = _UNITS_BYTES[words[len(number) :].strip().upper().rstrip("IB")]
    return round(float(number) * unit) if "." in number else int(number) * unit
