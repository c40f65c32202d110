"""What is seen, as JSON: a line of `sigwrap watch --json` each, and what the page is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sigwrap.report.forms.times import iso_time
from sigwrap.store.killswitch import State
from sigwrap.watch.board import Board, Line, Seen, Waits

SCHEMA = "sigwrap.watch/1"

Document = dict[str, Any]


def board_document(board: Board) -> Document:
    return {
        "schema": SCHEMA,
        "kind": "board",
        "now": iso_time(board.now_ns),
        "sessions": [_session(each) for each in board.sessions],
        "more": board.more,
        "waiting": [_question(each) for each in board.waiting],
        "killswitch": None if board.killswitch is None else _killswitch(board.killswitch),
        "problems": list(board.problems),
    }


def events_document(session_id: str, lines: Sequence[Line], left_out: int) -> Document:
    """`left_out`: events before these that came too fast to be told."""
    return {
        "schema": SCHEMA,
        "kind": "events",
        "session_id": session_id,
        "events": [_event(each) for each in lines],
        "left_out": left_out,
    }


def _session(seen: Seen) -> Document:
    return {
        "id": seen.id,
        "name": seen.name or None,
        "command": list(seen.command),
        "state": seen.state,
        "started": iso_time(seen.started_ns) if seen.started_ns else None,
        "processes": seen.processes,
        "denied": seen.denied,
        "asked": seen.asked,
        "last_event": iso_time(seen.last_ns) if seen.last_ns else None,
        "last": seen.last,
        "ended": seen.ended or None,
        "exit_status": seen.exit_status,
    }


def _question(waits: Waits) -> Document:
    others = ("asked_ns", "deadline_ns", "masked")
    fields = {name: value for name, value in waits._asdict().items() if name not in others}
    return {
        **fields,
        "files": list(waits.files),
        "asked": iso_time(waits.asked_ns),
        "deadline": iso_time(waits.deadline_ns),
    }


def _killswitch(state: State) -> Document:
    return {
        "since": iso_time(state.since_ns) if state.since_ns else None,
        "by": state.by or None,
        "reason": state.reason or None,
    }


def _event(line: Line) -> Document:
    return {
        "seq": line.seq,
        "time": iso_time(line.time_ns),
        "pid": line.pid,
        "type": line.type,
        "outcome": line.outcome or None,
        "text": line.text,
    }
