"""Moments and spans as people and programs read them."""

from __future__ import annotations

from datetime import UTC, datetime

_NS_PER_S = 1_000_000_000


def local_time(time_ns: int) -> str:
    moment = datetime.fromtimestamp(time_ns // _NS_PER_S, UTC).astimezone()
    return moment.strftime("%Y-%m-%d %H:%M:%S %Z")


def iso_time(time_ns: int) -> str:
    """UTC, with all nine digits: sorting the text sorts the moments."""
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
