"""Documents made fit for the page: what supervised processes wrote in them is made printable, and a
whole board is never larger than a browser takes at once. What doesn't fit is counted."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sigwrap.escape import printable, shell_words, shortened
from sigwrap.mediate.questions import wants
from sigwrap.watch.board import Board, Line
from sigwrap.watch.documents import board_document, events_document

_WAITING_BYTES = 400_000
_SESSIONS_BYTES = 200_000
_LONGEST = 4_000  # characters of a text
_LONGEST_COMMAND = 400
_LONGEST_EVENT = 600
_MOST_ITEMS = 200
_DEEPEST = 8


def board_text(board: Board) -> str:
    document = board_document(board)
    sessions = [_session(each) for each in document["sessions"]]
    document["sessions"], more = _fitting(sessions, _SESSIONS_BYTES)
    document["more"] += more
    waiting = [_question(each) for each in document["waiting"]]
    document["waiting"], left_out = _fitting(waiting, _WAITING_BYTES)
    if left_out:
        document["problems"].append(f"{left_out} more approval requests: see sigwrap approvals")
    document["problems"] = document["problems"][:_MOST_ITEMS]
    return _json(fit(document))


def lines_text(session_id: str, lines: Sequence[Line], left_out: int) -> str:
    shown = [each._replace(text=shortened(each.text, _LONGEST_EVENT)) for each in lines]
    return _json(fit(events_document(session_id, shown, left_out)))


def fit(value: Any, depth: int = 0) -> Any:
    """The same, printable throughout."""
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


def _session(document: dict[str, Any]) -> dict[str, Any]:
    """With its command line in the place of its words."""
    words = document["command"][:_MOST_ITEMS]
    return fit({**document, "command": shortened(shell_words(words), _LONGEST_COMMAND)})  # type: ignore[no-any-return]


def _question(document: dict[str, Any]) -> dict[str, Any]:
    is_cut = document["is_cut"] or len(document["what"]) > _LONGEST
    files = document["files"][:_MOST_ITEMS]
    whole = {**document, "is_cut": is_cut, "files": files, "wants": wants(document["kind"])}
    return fit(whole)  # type: ignore[no-any-return]


def _fitting(found: list[Any], room: int) -> tuple[list[Any], int]:
    """The first ones, and how many others there are."""
    for at, each in enumerate(found):
        room -= len(_json(each).encode())
        if room < 0:
            return found[:at], len(found) - at
    return found, 0


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
