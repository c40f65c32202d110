"""A session's log as rows, cut into segments."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import NamedTuple

from sigwrap.log.reader import Session
from sigwrap.report.forms.times import iso_time


class Segment(NamedTuple):
    session: str
    date: str  # UTC date of the session's start, YYYY-MM-DD
    first: int  # seq of its first event; last + 1 if it has only a session's final rows
    last: int
    head: str  # hash of event `last`
    lines: list[str]  # JSON rows without newline


def segments(session: Session, ends: Callable[[int, int, int], bool]) -> Iterator[Segment]:
    """Yield the segments; one ends where `ends` says so of a seq, the rows so far, their size."""
    lines, first, size, date, row = list[str](), 0, 0, "", None
    for row in session.rows():
        date = date or iso_time(row.time_ns)[:10]
        first = first or row.seq
        lines.append(json.dumps({"session": session.id, **row._asdict()}))
        size += len(lines[-1])
        if ends(row.seq, len(lines), size):
            yield Segment(session.id, date, first, row.seq, row.hash, lines)
            lines, first, size = [], 0, 0
    if row is not None and lines:
        yield Segment(session.id, date, first, row.seq, row.hash, lines)
