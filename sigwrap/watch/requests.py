"""Approval requests: as the sessions list them, and in printable lines."""

from __future__ import annotations

import os
import time
from typing import Any

from sigwrap.approve.control_client import Answered, Unreachable, ask_all
from sigwrap.approve.control_socket import ControlReply
from sigwrap.approve.requests import wants
from sigwrap.approve.wording import detail_lines, rule_line
from sigwrap.events import number, text, texts
from sigwrap.log.folder import JOURNAL_SUFFIX, database_path, journal_path, sessions_folder
from sigwrap.log.journal import writer_lives
from sigwrap.text import printable, shell_words
from sigwrap.watch.board import ListedRequest

_LIST = {"do": "list"}
_AGAIN_AFTER_S = 0.6  # a session replaces a socket that was removed within half a second
_LOOKS_FOR_S = 1.0
_LONGEST_S = 1e9
_NS_PER_S = 1_000_000_000
_TEXTS = "id kind process what masked runs loads folder rule policy message".split()
_NOT_FROM_HERE = "cannot be approved on this terminal: processes in the session could type on it"


def listed_by_all(store: str) -> tuple[list[Answered], list[Unreachable]]:
    """Ask all sessions for their requests, twice if one is silent."""
    answered, failures = ask_all(store, _LIST)
    if silent_ones(store, answered, failures):
        time.sleep(_AGAIN_AFTER_S)
        answered, failures = ask_all(store, _LIST)
        failures += silent_ones(store, answered, failures)
    return answered, failures


def silent_ones(
    store: str, answered: list[Answered], failures: list[Unreachable]
) -> list[Unreachable]:
    """Return the running sessions that did not answer: a process in a session can remove control
    sockets."""
    known = {each.session_id for each in answered} | {each.session_id for each in failures}
    try:
        names = os.listdir(sessions_folder(store))
    except OSError:
        return []
    ids = {each.removesuffix(JOURNAL_SUFFIX) for each in names if each.endswith(JOURNAL_SUFFIX)}
    until_s = time.monotonic() + _LOOKS_FOR_S
    return [
        Unreachable(f"session {each} is running but does not answer", each)
        for each in sorted(ids - known)
        if time.monotonic() < until_s and writer_lives(journal_path(database_path(store, each)))
    ]


def requests_in(reply: ControlReply) -> list[dict[str, Any]]:
    found = reply.get("requests")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def request_of(
    session_id: str, reply: ControlReply, listed: dict[str, Any], now_ns: int
) -> ListedRequest:
    """`reply`: that of its session, which lists the request."""
    notes = [text(listed.get("note")), _NOT_FROM_HERE if reply.get("typed") is True else ""]
    fields: dict[str, Any] = {
        **{name: text(listed.get(name)) for name in _TEXTS},
        **{name: number(listed.get(name)) for name in ("pid", "depth")},
        **{name: listed.get(name) is True for name in ("is_cut", "may_always")},
        "files": tuple(texts(listed.get("files"))),
        "note": "; ".join(filter(None, notes)),
        "asked_ns": now_ns - _ns(listed.get("waited_s")),
        "deadline_ns": now_ns + _ns(listed.get("expires_in_s")),
    }
    return ListedRequest(session_id=session_id, session_name=text(reply.get("name")), **fields)


def lines_of(request: ListedRequest, whole: str) -> list[str]:
    """Return what the request is about; the last line names the rule. `whole`: the command that
    shows a request in full."""
    head = [
        f"{printable(request.id)}  {shell_words([request.process])} (pid {request.pid}, depth "
        f"{request.depth}) {wants(request.kind)} {printable(request.what)}"
    ]
    if request.is_cut:
        head.append(f"in full: {whole}")
    details = detail_lines(
        head,
        files=", then ".join(shell_words([file]) for file in request.files),
        runs=printable(request.runs),
        loads=printable(request.loads),
        folder=shell_words([request.folder]) if request.folder else "",
        note=printable(request.note),
    )
    return [*head, *details, rule_line(request.rule, request.policy, request.message)]


def origin_of(request: ListedRequest, now_ns: int) -> str:
    left_s = max(0, request.deadline_ns - now_ns) // _NS_PER_S
    left = f"{left_s} s" if left_s < 60 else f"{left_s // 60}:{left_s % 60:02}"
    name = f"{printable(request.session_name)} " if request.session_name else ""
    return f"session {name}{printable(request.session_id)}; expires in {left}"


def _ns(seconds: object) -> int:
    is_one = isinstance(seconds, int | float) and abs(seconds) < _LONGEST_S
    return int(float(str(seconds)) * 1e9) if is_one else 0
