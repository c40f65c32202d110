"""Events for other programs: one a line, as JSON with the names that such logs use, or as CSV.

A log as metrics is folds/metrics.py. It writes Prometheus' text by itself: prometheus_client would
have to be in the one file, and escapes of a label only what breaks a line, so a terminal would obey
the rest.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from sigwrap.events import EXPORTED_SIGNAL_FIELDS, SIGNAL_TYPES, Event
from sigwrap.report.forms.times import iso_time
from sigwrap.report.query import forms
from sigwrap.report.query.columns import Told
from sigwrap.report.query.views import EXPORTED


def jsonl_line(event: Event, session_id: str) -> str:
    payload = event.payload
    line: dict[str, Any] = {
        "timestamp": iso_time(event.time_ns),
        "session_id": session_id,
        "event_type": event.type,
    }
    if event.type in SIGNAL_TYPES:
        line |= {name: payload.get(name) for name in EXPORTED_SIGNAL_FIELDS}
    # Behind the line's own keys, and never in their place: a payload can't fake them.
    line |= {name: value for name, value in payload.items() if name not in line}
    line |= {"seq": event.seq, "pid": event.pid, "hash": event.hash}
    return json.dumps(line, separators=(",", ":"))


def csv_lines(told: Iterable[tuple[str, Event]], *, to_terminal: bool = False) -> Iterator[str]:
    """One row an event, with the columns that many types have."""
    names = tuple(column.name for column in EXPORTED)
    rows = (
        tuple(column.of(each) for column in EXPORTED)
        for each in (Told(session=session_id, event=event) for session_id, event in told)
    )
    return forms.csv(names, rows, to_terminal=to_terminal)
