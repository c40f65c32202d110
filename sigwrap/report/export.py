"""Events for other programs: one JSON object a line, with the names that such logs use."""

from __future__ import annotations

import json
from typing import Any

from sigwrap.events import Event
from sigwrap.report.summary import SIGNAL_TYPES
from sigwrap.report.times import iso_time

# In this order, and always all of them; what else an event has, follows.
SIGNAL_KEYS = (
    "signal",
    "signal_name",
    "source_pid",
    "source_cmd",
    "target_pid",
    "target_cmd",
    "target_type",
    "decision",
    "rule_name",
    "fallback",
    "original_signal",
    "platform",
    "syscall",
)


def jsonl_line(event: Event, session_id: str) -> str:
    payload = event.payload
    line: dict[str, Any] = {
        "timestamp": iso_time(event.time_ns),
        "session_id": session_id,
        "event_type": event.type,
    }
    if event.type in SIGNAL_TYPES:
        line |= {key: payload.get(key) for key in SIGNAL_KEYS}
    # After the line's own: nothing in a payload may pass for them.
    line |= {key: value for key, value in payload.items() if key not in line}
    line |= {"seq": event.seq, "pid": event.pid, "hash": event.hash}
    return json.dumps(line, separators=(",", ":"))
