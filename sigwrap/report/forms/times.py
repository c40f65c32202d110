"""Moments, spans and sizes, for people and programs."""

from __future__ import annotations

from datetime import UTC, datetime

_NS_PER_S = 1_000_000_000
_UNITS = "KMGTPE"


def local_time(time_ns: int, *, utc: bool = False) -> str:
    moment = datetime.fromtimestamp(time_ns // _NS_PER_S, UTC)
    return (moment if utc else moment.astimezone()).strftime("%Y-%m-%d %H:%M:%S %Z")


def iso_time(time_ns: int) -> str:
    """Return UTC with nine digits, so that sorting the text sorts the moments."""
    seconds, fraction_ns = divmod(time_ns, _NS_PER_S)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{fraction_ns:09}Z"


def span(duration_ns: int) -> str:
    seconds = duration_ns / _NS_PER_S
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest_s = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest_s} s"
    hours, rest_min = divmod(minutes, 60)
    return f"{hours} h {rest_min} min"


def ago(duration_ns: int) -> str:
    """Return such as "5 min ago", or "" for a moment that is not in the past."""
    return f"{rough_span(duration_ns)} ago" if duration_ns >= _NS_PER_S else ""


def rough_span(duration_ns: int) -> str:
    """Return the span in the largest unit that fits."""
    seconds = max(duration_ns // _NS_PER_S, 0)
    for unit, length_s in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length_s:
            return f"{seconds // length_s} {unit}"
    return f"{seconds} s"


def byte_size(size: int) -> str:
    """Return a size as ls -h does: 812B, 4.2K, 31M."""
    value, unit = float(size), "B"
    for larger in _UNITS:
        if value < 1000:
            break
        value, unit = value / 1024, larger
    digits = f"{value:.1f}" if value < 9.95 and unit != "B" else f"{value:.0f}"
    return digits + unit
