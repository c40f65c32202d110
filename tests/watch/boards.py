"""Boards to look at."""

from __future__ import annotations

from typing import Any

from sigwrap.watch.board import RUNNING, Board, EventLine, ListedRequest, SessionView

SECOND = 1_000_000_000
NOW_NS = 1_700_000_000 * SECOND


def seen(session_id: str = "s1", **fields: Any) -> SessionView:
    known: dict[str, Any] = {
        "id": session_id,
        "name": "",
        "command": ("npm", "start"),
        "state": RUNNING,
        "started_ns": NOW_NS - 90 * SECOND,
        "processes": 7,
        "denied": 2,
        "asked": 1,
        "last_ns": NOW_NS,
        "last": "ls",
    }
    return SessionView(**{**known, **fields})


def request(approval_id: str = "3f9a10", **fields: Any) -> ListedRequest:
    known: dict[str, Any] = {
        "session_id": "s1",
        "session_name": "",
        "id": approval_id,
        "kind": "exec",
        "pid": 4711,
        "process": "node",
        "depth": 2,
        "what": "git push --force",
        "masked": "git push --force",
        "is_cut": False,
        "runs": "",
        "loads": "",
        "files": ("/usr/bin/git",),
        "folder": "/home/me/project",
        "note": "",
        "rule": "ask-push",
        "policy": "mine",
        "message": "pushes are looked at",
        "may_always": True,
        "asked_ns": NOW_NS - SECOND,
        "deadline_ns": NOW_NS + 59 * SECOND,
    }
    return ListedRequest(**{**known, **fields})


def line(seq: int, outcome: str = "denied", text: str = "rm -rf /", **fields: Any) -> EventLine:
    return EventLine(seq, NOW_NS, 4711, fields.get("type", "exec_denied"), outcome, text)


def board(*sessions: SessionView, waiting: tuple[ListedRequest, ...] = (), **fields: Any) -> Board:
    known: dict[str, Any] = {"more": 0, "killswitch": None, "problems": ()}
    return Board(now_ns=NOW_NS, sessions=sessions, waiting=waiting, **{**known, **fields})
