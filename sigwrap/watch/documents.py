"""JSON of what is seen: for `sigwrap watch`, and for the page, where all text is printable and a
document has a maximum size."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sigwrap.escape import printable, shell_words, shortened
from sigwrap.mediate.questions import wants
from sigwrap.report.forms.times import iso_time
from sigwrap.store.killswitch import State
from sigwrap.watch.board import ApprovalRequest, Board, EventLine, SessionView

SCHEMA = "sigwrap.watch/1"
_WAITING_BYTES = 400_000
_SESSIONS_BYTES = 200_000
_LONGEST = 4_000  # characters of a text
_LONGEST_COMMAND = 400
_LONGEST_EVENT = 600
_MOST_ITEMS = 200
_DEEPEST = 8

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


def _request(request: ApprovalRequest) -> Document:
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


# For the page


def board_text(board: Board) -> str:
    """Return a board as one line of JSON, with the first sessions and requests that fit."""
    document = board_document(board)
    sessions = [_page_session(each) for each in document["sessions"]]
    document["sessions"], more = _fitting(sessions, _SESSIONS_BYTES)
    document["more"] += more
    waiting = [_page_request(each) for each in document["waiting"]]
    document["waiting"], left_out = _fitting(waiting, _WAITING_BYTES)
    if left_out:
        document["problems"].append(f"{left_out} more approval requests: see sigwrap watch")
    document["problems"] = document["problems"][:_MOST_ITEMS]
    return _json(fit(document))


def lines_text(session_id: str, lines: Sequence[EventLine], left_out: int) -> str:
    shown = [each._replace(text=shortened(each.text, _LONGEST_EVENT)) for each in lines]
    return _json(fit(events_document(session_id, shown, left_out)))


def fit(value: Any, depth: int = 0) -> Any:
    """Return the same, with all text printable and of limited length and depth."""
    match value:
        case str():
            return shortened(printable(value[:_LONGEST]), _LONGEST)
        case dict() if depth < _DEEPEST:
            return {printable(str(name)): fit(each, depth + 1) for name, each in value.items()}
        case list() | tuple() if depth < _DEEPEST:
            return [fit(each, depth + 1) for each in value]
        case None | bool() | int() | float():
            return value
        case _:
            return "…"


def _page_session(document: Document) -> Any:
    words = document["command"][:_MOST_ITEMS]
    return fit({**document, "command": shortened(shell_words(words), _LONGEST_COMMAND)})


def _page_request(document: Document) -> Any:
    is_cut = document["is_cut"] or len(document["what"]) > _LONGEST
    files = document["files"][:_MOST_ITEMS]
    return fit({**document, "is_cut": is_cut, "files": files, "wants": wants(document["kind"])})


def _fitting(found: list[Any], room: int) -> tuple[list[Any], int]:
    """Return the first ones, and how many others there are."""
    for at, each in enumerate(found):
        room -= len(_json(each).encode())
        if room < 0:
            return found[:at], len(found) - at
    return found, 0


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
