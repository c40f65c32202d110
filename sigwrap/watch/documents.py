"""JSON of what is seen: for `sigwrap watch`, and for the page, where all text is printable and a
document has a maximum size."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sigwrap.approve.requests import wants
from sigwrap.control.killswitch import State
from sigwrap.report.forms.times import iso_time
from sigwrap.text import printable, shell_words, shortened
from sigwrap.watch.board import Board, EventLine, ListedRequest, SessionView

SCHEMA = "sigwrap.watch/1"
_WAITING_BYTES = 400_000
_SESSIONS_BYTES = 200_000
_LONGEST = 4_000  # characters of a text
_LONGEST_COMMAND = 400
_LONGEST_EVENT = 600
_MOST_ITEMS = 300

Document = dict[str, Any]


def board_document(board: Board) -> Document:
    return {
        "schema": SCHEMA,
        "kind": "board",
        "now": iso_time(board.now_ns),
        "sessions": [_session(each) for each in board.sessions],
        "more": board.more,
        "waiting": [_request(each) for each in board.waiting],
        "killswitch": None if board.killswitch is None else _killswitch(board.killswitch),
        "problems": list(board.problems),
    }


def events_document(session_id: str, lines: Sequence[EventLine], left_out: int) -> Document:
    """`left_out`: earlier events that came too fast to be shown."""
    return {
        "schema": SCHEMA,
        "kind": "events",
        "session_id": session_id,
        "events": [_event(each) for each in lines],
        "left_out": left_out,
    }


def _session(seen: SessionView) -> Document:
    fields = seen._asdict()
    started_ns, last_ns = fields.pop("started_ns"), fields.pop("last_ns")
    return {
        **fields,
        "name": seen.name or None,
        "command": list(seen.command),
        "started": iso_time(started_ns) if started_ns else None,
        "last_event": iso_time(last_ns) if last_ns else None,
        "ended": seen.ended or None,
    }


def _request(request: ListedRequest) -> Document:
    others = ("asked_ns", "deadline_ns", "masked")
    fields = {name: value for name, value in request._asdict().items() if name not in others}
    return {
        **fields,
        "files": list(request.files),
        "asked": iso_time(request.asked_ns),
        "deadline": iso_time(request.deadline_ns),
    }


def _killswitch(state: State) -> Document:
    return {
        "since": iso_time(state.since_ns) if state.since_ns else None,
        "by": state.by or None,
        "reason": state.reason or None,
    }


def _event(line: EventLine) -> Document:
    fields = line._asdict()
    time_ns = fields.pop("time_ns")
    return {**fields, "time": iso_time(time_ns), "outcome": line.outcome or None}


# Documents of the page


def board_text(board: Board) -> str:
    """Return a board as one line of JSON, with the first sessions and requests that fit."""
    document = board_document(board)
    for each in document["sessions"]:
        words = each["command"][:_MOST_ITEMS]
        each["command"] = shortened(shell_words(words), _LONGEST_COMMAND)
    for each in document["waiting"]:
        each["is_cut"] |= len(each["what"]) > _LONGEST
        each["wants"] = wants(each["kind"])
    document = fit(document)
    document["sessions"] = _fitting(document["sessions"], _SESSIONS_BYTES)
    document["more"] += len(board.sessions) - len(document["sessions"])
    document["waiting"] = _fitting(document["waiting"], _WAITING_BYTES)
    if left_out := len(board.waiting) - len(document["waiting"]):
        document["problems"].append(f"{left_out} more approval requests: see sigwrap watch")
    return _json(document)


def lines_text(session_id: str, lines: Sequence[EventLine], left_out: int) -> str:
    shown = [each._replace(text=shortened(each.text, _LONGEST_EVENT)) for each in lines]
    return _json(fit(events_document(session_id, shown, left_out)))


def fit(value: Any) -> Any:
    """Return the same, with all text printable, and texts and lists of limited length."""
    match value:
        case str():
            return shortened(printable(value[:_LONGEST]), _LONGEST)
        case dict():
            return {name: fit(each) for name, each in value.items()}
        case list():
            return [fit(each) for each in value[:_MOST_ITEMS]]
        case _:
            return value


def _fitting(found: list[Any], room: int) -> list[Any]:
    """Return the first ones, as far as there is room."""
    for at, each in enumerate(found):
        room -= len(_json(each).encode())
        if room < 0:
            return found[:at]
    return found


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
