"""Export events as JSON lines, with the names that such logs use."""

from __future__ import annotations

import json
from typing import Any

from sigwrap.events import EXPORTED_SIGNAL_FIELDS, SIGNAL_TYPES, Event
from sigwrap.report.forms.times import iso_time


def jsonl_line(event: Event, session_id: str) -> str:
    payload = event.payload
    line: dict[str, Any] = {
        "timestamp": iso_time(event.time_ns),
        "session_id": session_id,
        "event_type": event.type,
    }
    if event.type in SIGNAL_TYPES:
        line |= {name: payload.get(name) for name in EXPORTED_SIGNAL_FIELDS}
    # After the line's own keys, and never in their place: a payload can't fake them.
    line |= {name: value for name, value in payload.items() if name not in line}
    line |= {"seq": event.seq, "pid": event.pid, "hash": event.hash}
    return json.dumps(line, separators=(",", ":"))
