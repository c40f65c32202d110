"""approve, deny: answer an approval request; and the list of requests that watch prints."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Annotated, Any

import typer

from sigwrap.approve.control_client import Answered, Unreachable, ask_all
from sigwrap.approve.control_socket import ControlReply, ControlRequest
from sigwrap.approve.wording import SessionHints, store_option
from sigwrap.cli.control import check, refuse_inside
from sigwrap.cli.group import App
from sigwrap.cli.options import StoreOption, watched_store
from sigwrap.cli.output import note, out
from sigwrap.errors import SessionError, UsageError
from sigwrap.events import number, text, texts
from sigwrap.text import did_you_mean, printable, rows
from sigwrap.watch.requests import (
    lines_of,
    listed_by_all,
    origin_of,
    request_of,
    requests_in,
    silent_ones,
)

APPROVALS_SCHEMA = "sigwrap.approvals/1"
_SHOWN = 5
_OF_THOSE = " in the sessions that answered"
_INSIDE = "processes in a session can't answer approval requests"

IdArgument = Annotated[
    str,
    typer.Argument(
        metavar="[ID]",
        help="Id from sigwrap watch [default: the only open request]",
    ),
]


app = App()


@app.command()
def approve(
    approval_id: IdArgument = "",
    always: Annotated[
        bool, typer.Option("--always", help="Approve identical requests of this session too")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask for confirmation if ID is left out")
    ] = False,
    store: StoreOption = None,
) -> None:
    """Approve a request.

    The waiting exec, signal or connection continues. Without ID, shows the only open request and
    asks for confirmation.
    """
    folder = watched_store(store)
    if not approval_id:
        only = _only_one(folder)
        approval_id = text(only.get("id"))
        if not yes:
            _confirm(only, folder)
    reply = _answer(folder, {"do": "approve", "id": approval_id, "always": always})
    if always and reply.get("granted") and reply.get("always") is False:
        note(
            "approved once only: --always has no effect on a request from another root directory, "
            "or one that is not fully known"
        )


@app.command()
def deny(
    approval_id: IdArgument = "",
    message: Annotated[
        str, typer.Option("--message", metavar="M", help="Message to show to the command")
    ] = "",
    store: StoreOption = None,
) -> None:
    """Deny a request.

    The waiting exec, signal or connection fails.
    """
    folder = watched_store(store)
    wanted = approval_id or text(_only_one(folder).get("id"))
    _answer(folder, {"do": "deny", "id": wanted, "message": message})


def print_requests(store: str, *, as_json: bool) -> None:
    """Print all open requests of the running sessions."""
    refuse_inside(_INSIDE)
    requests, more, left_out = _listed(store)
    if as_json:
        out(_document(requests, more, left_out))
        return
    if not requests:
        out(f"no approval requests{_OF_THOSE if left_out else ''}")
    for request in requests:
        out(_rendered(request, store))
    if more:
        out(f"and {more} more")


def print_request(store: str, wanted: str, *, as_json: bool) -> None:
    """Print one open request in full."""
    refuse_inside(_INSIDE)
    reply, session_id = _first_that_knows(store, {"do": "show", "id": wanted})
    shown = reply.get("request")
    request = {
        **(shown if isinstance(shown, dict) else {}),
        "session_id": session_id,
        "session_name": text(reply.get("name")),
    }
    out(_document([request], 0, []) if as_json else _rendered(request, store))


def _listed(store: str) -> tuple[list[dict[str, Any]], int, list[Unreachable]]:
    """Return the open requests, the number of others that the sessions did not list, and the
    sessions that did not answer. A note names each of those."""
    answered, failures = listed_by_all(store)
    good = _trusted(answered, failures)
    requests = [
        {**each, "session_id": session_id, "session_name": text(reply.get("name"))}
        for session_id, reply in good
        for each in requests_in(reply)
    ]
    return requests, sum(number(reply.get("more")) for _, reply in good), failures


def _trusted(
    answered: list[Answered], failures: list[Unreachable], may_fail: tuple[str, ...] = ()
) -> list[Answered]:
    """Return the good replies, and note the sessions without one."""
    good = []
    for each in answered:
        try:
            check(each.session_id, each.reply, may_fail)
            good.append(each)
        except Unreachable as failure:
            failures.append(failure)
    _skip(failures, all_failed=not good)
    return good


def _skip(failures: list[Unreachable], *, all_failed: bool) -> None:
    different = list({str(each): each for each in failures}.values())
    last = different.pop() if different and all_failed else None
    for each in different[:_SHOWN]:
        note(f"skipped: {printable(str(each))}")
    if len(different) > _SHOWN:
        note(f"skipped {len(different) - _SHOWN} more sessions")
    if last is not None:
        raise last


def _document(requests: list[dict[str, Any]], more: int, left_out: list[Unreachable]) -> str:
    """`session_id` of a failure is null if it is not about one session."""
    unreachable = [
        {"session_id": each.session_id or None, "why": each.message} for each in left_out
    ]
    document = {"schema": APPROVALS_SCHEMA, "requests": requests, "more": more}
    return json.dumps({**document, "unreachable": unreachable}, indent=2)


def _rendered(request: dict[str, Any], store: str) -> str:
    now_ns = time.time_ns()
    of_session = {"name": request.get("session_name")}
    shown = request_of(text(request.get("session_id")), of_session, request, now_ns)
    session = SessionHints(shown.policy, store_option(os.path.abspath(store), os.environ))
    first, *rest = lines_of(shown, session.command("watch", "--full", printable(shown.id)))
    rest[-1] += f"; {origin_of(shown, now_ns)}"
    lines = [first, *(f"        {line}" for line in rest)]
    try:
        columns = os.get_terminal_size(1).columns
    except OSError:  # no terminal breaks them
        return "\n".join(lines)
    return "\n".join(row for line in lines for row in rows(line, columns))


def _answer(store: str, request: ControlRequest) -> ControlReply:
    reply, session_id = _first_that_knows(store, request)
    settled = texts(reply.get("settled")) or [""]
    others = f" (and {len(settled) - 1} identical requests)" if len(settled) > 1 else ""
    answer = "approved" if reply.get("granted") else "denied"
    message = f": {reply['message']}" if reply.get("message") else ""
    out(printable(f"{settled[0]} {answer}{others} in session {session_id}{message}"))
    out(f"  {printable(str(reply.get('what', '')))}")
    return reply


def _first_that_knows(store: str, request: ControlRequest) -> tuple[ControlReply, str]:
    """Ask all sessions; return the reply and the id of the one that has the request."""
    answered, failures = ask_all(store, request)
    failures += silent_ones(store, answered, failures)
    good = _trusted(answered, failures, may_fail=("unknown-id", "late"))
    for session_id, reply in good:
        if reply.get("ok") is True:
            return reply, session_id
    for _, reply in good:
        if reply.get("error") == "late":
            raise SessionError(printable(str(reply.get("message"))))
    open_ids = [each for _, reply in good for each in texts(reply.get("open"))]
    raise _no_such(request["id"], open_ids, store, are_some_left_out=bool(failures))


def _no_such(
    wanted: str, open_ids: list[str], store: str, *, are_some_left_out: bool
) -> SessionError:
    there_is_none = f"there is no request {wanted!r}"
    if are_some_left_out:
        return SessionError(f"{there_is_none}{_OF_THOSE}", "a skipped session may have it")
    if not open_ids:
        return SessionError(
            f"{there_is_none}: no running session in {store} has open requests",
            "a session's requests end with the session",
        )
    meant = did_you_mean(wanted, open_ids).rstrip()
    hint = meant or f"open: {', '.join(open_ids[:_SHOWN])}"
    return SessionError(there_is_none, printable(hint))


def _only_one(store: str) -> dict[str, Any]:
    found, more, left_out = _listed(store)
    if left_out:
        raise SessionError("some sessions did not answer, so an id is needed", "see sigwrap watch")
    if not found:
        raise SessionError(f"no approval requests in the running sessions of {store}")
    if len(found) + more > 1:
        ids = ", ".join(text(each.get("id")) for each in found[:_SHOWN])
        raise SessionError(
            f"{len(found) + more} approval requests are open: give an id",
            printable(f"{ids}; sigwrap watch shows them"),
        )
    return found[0]


def _confirm(request: dict[str, Any], store: str) -> None:
    """Ask first: another request may be open by now than the one that the user saw."""
    refuse_inside(_INSIDE)
    if not sys.stdin.isatty():
        raise UsageError(
            "no id given, and no terminal to confirm on",
            "give the id, or use sigwrap approve --yes",
        )
    out(_rendered(request, store))
    if not typer.confirm("sigwrap: approve this request?", err=True):
        raise typer.Abort
