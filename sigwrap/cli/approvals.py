"""approvals, approve, deny: ask the running sessions, and say what they reply."""

from __future__ import annotations

import difflib
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from sigwrap.cli.control import check, refuse_inside
from sigwrap.cli.examples import examples
from sigwrap.cli.group import App, Group
from sigwrap.cli.options import JsonOption, StoreOption
from sigwrap.cli.output import note, out
from sigwrap.cli.watch import NotifyOption, show, watched_store
from sigwrap.errors import SessionError, UsageError
from sigwrap.escape import printable, rows
from sigwrap.events import number, text, texts
from sigwrap.protocols.control import ControlReply, ControlRequest
from sigwrap.protocols.control_client import Answered, Unreachable
from sigwrap.run.asking.wording import Session, store_option
from sigwrap.tuples import NamedTuple
from sigwrap.watch.asking import listed_by_all
from sigwrap.watch.question import lines_of, origin_of, waiting_in, waits_of

APPROVALS_SCHEMA = "sigwrap.approvals/1"
_FAILURES_SHOWN = 5
_IDS_SHOWN = 5
_OF_THOSE = " in the sessions that answered"
_INSIDE = "processes in a session can't answer approval requests"

_approvals = App(
    cls=Group,
    invoke_without_command=True,
    rich_markup_mode=None,
    epilog=examples("approvals"),
    help="List open approval requests.",
)

IdArgument = Annotated[
    str,
    typer.Argument(
        metavar="[ID]",
        help="Id from sigwrap approvals [default: the only open request]",
        show_default=False,
    ),
]


def register(app: typer.Typer) -> None:
    app.add_typer(_approvals, name="approvals")
    app.command(epilog=examples("approve"))(approve)
    app.command(epilog=examples("deny"))(deny)


@_approvals.callback()
def approvals(
    context: typer.Context,
    full: Annotated[
        str, typer.Option("--full", metavar="ID", help="Show one request in full")
    ] = "",
    watch: Annotated[
        bool, typer.Option("--watch", help="Keep watching, and answer new requests")
    ] = False,
    notify: NotifyOption = "",
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """List open approval requests of all running sessions in the store."""
    if notify and not watch:
        raise UsageError("--notify needs --watch")
    if watch:
        if full or as_json or context.invoked_subcommand is not None:
            raise UsageError(
                "--watch can't be combined with --full, --json or list",
                "for a script: sigwrap watch --json",
            )
        show(watched_store(store), notify, only_questions=True)
    elif full:
        _show_one(watched_store(store), full, as_json)
    elif context.invoked_subcommand is None:
        _show(watched_store(store), as_json)
    else:
        context.obj = (store, as_json)


@_approvals.command("list")
def list_approvals(
    context: typer.Context, store: StoreOption = None, as_json: JsonOption = False
) -> None:
    """List open approval requests (same as sigwrap approvals)."""
    outer_store, outer_as_json = context.obj
    _show(watched_store(outer_store if store is None else store), as_json or outer_as_json)


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
    _answer(folder, {"do": "approve", "id": approval_id, "always": always})


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


def _show(store: str, as_json: bool) -> None:
    refuse_inside(_INSIDE)
    with _listing(store) as listing:
        requests = _requests(listing.answered)
        more = sum(number(reply.get("more")) for _client, reply in listing.answered)
    if as_json:
        out(_document(requests, more, listing.left_out))
    elif not requests:
        out(f"no approval requests{_OF_THOSE if listing.left_out else ''}")
    else:
        for request in requests:
            out(_rendered(request, store))
        if more:
            out(f"and {more} more")


def _show_one(store: str, wanted: str, as_json: bool) -> None:
    refuse_inside(_INSIDE)
    reply, session_id = _first_that_knows(store, {"do": "show", "id": wanted})
    shown = reply.get("request")
    request = {
        **(shown if isinstance(shown, dict) else {}),
        "session_id": session_id,
        "session_name": text(reply.get("name")),
    }
    out(_document([request], 0, []) if as_json else _rendered(request, store))


def _document(requests: list[dict[str, Any]], more: int, left_out: list[Unreachable]) -> str:
    """`more`: requests that the sessions didn't list; `unreachable`: what waits in those isn't
    known, and `session_id` is null where that is not about one session."""
    unreachable = [
        {"session_id": each.session_id or None, "why": each.message} for each in left_out
    ]
    document = {"schema": APPROVALS_SCHEMA, "requests": requests, "more": more}
    return json.dumps({**document, "unreachable": unreachable}, indent=2)


class _Listing(NamedTuple):
    answered: list[Answered]
    left_out: list[Unreachable]


@contextmanager
def _listing(store: str) -> Iterator[_Listing]:
    """Of every session that answers; a note says which don't."""
    with listed_by_all(store) as (answered, failures):
        good: list[Answered] = []
        for each in answered:
            try:
                check(each.client, each.reply)
                good.append(each)
            except Unreachable as failure:
                failures.append(failure)
        said = list({str(each): each for each in failures}.values())
        last = said.pop() if said and not good else None
        for each_failure in said[:_FAILURES_SHOWN]:
            _leave_out(each_failure)
        if len(said) > _FAILURES_SHOWN:
            note(f"skipped {len(said) - _FAILURES_SHOWN} more sessions")
        if last is not None:
            raise last
        yield _Listing(good, failures)


def _rendered(request: dict[str, Any], store: str) -> str:
    session_id = text(request.get("session_id"))
    now_ns = time.time_ns()
    of_session = {"name": request.get("session_name")}
    waits = waits_of(session_id, of_session, request, now_ns)
    session = Session(waits.policy, store_option(os.path.abspath(store), os.environ))
    whole = session.command("approvals", "--full", printable(waits.id))
    first, *rest = lines_of(waits, whole)
    rest[-1] += f"; {origin_of(waits, now_ns)}"
    lines = [first, *(f"        {line}" for line in rest)]
    try:
        columns = os.get_terminal_size(1).columns
    except OSError:  # no terminal: nothing breaks them there
        return "\n".join(lines)
    return "\n".join(row for line in lines for row in rows(line, columns))


def _answer(store: str, request: ControlRequest) -> None:
    reply, session_id = _first_that_knows(store, request)
    _tell(reply, session_id)
    if request.get("always") and reply.get("granted") and reply.get("always") is False:
        note(
            "approved once only: --always has no effect on a request from another root directory, "
            "or one that is not fully known"
        )


def _first_that_knows(store: str, request: ControlRequest) -> tuple[ControlReply, str]:
    """Its reply, and which session it is."""
    wanted = request["id"]
    open_ids: list[str] = []
    late = ""
    failures: list[Unreachable] = []  # of sessions that may have it
    with _listing(store) as listing:

        def lists_it(each: Answered) -> bool:
            return any(listed.get("id") == wanted for listed in waiting_in(each.reply))

        # First where it is listed: another that is silent from now on takes the time that is left.
        for client, _ in sorted(listing.answered, key=lists_it, reverse=True):
            try:
                reply = client.ask(request)
                check(client, reply, may_fail=("unknown-id", "late"))
            except Unreachable as failure:
                failures.append(failure)
                continue
            match reply.get("error"):
                case None:
                    return reply, client.session_id
                case "unknown-id":
                    open_ids += texts(reply.get("open"))
                case _:
                    late = str(reply.get("message"))
    if late:
        raise SessionError(printable(late))
    if failures:
        for each in failures[:-1]:
            _leave_out(each)
        raise failures[-1]
    if listing.left_out:
        raise SessionError(
            f"there is no request {wanted!r}{_OF_THOSE}", "a skipped session may have it"
        )
    if not open_ids:
        raise SessionError(
            f"there is no request {wanted!r}: no running session in {store} has open requests",
            "a session's requests end with the session",
        )
    nearest = difflib.get_close_matches(wanted, open_ids, n=1, cutoff=0.5)
    hint = f'did you mean "{nearest[0]}"?' if nearest else f"open: {', '.join(open_ids[:5])}"
    raise SessionError(f"there is no request {wanted!r}", printable(hint))


def _requests(answered: list[Answered]) -> list[dict[str, Any]]:
    return [
        {**each, "session_id": client.session_id, "session_name": text(reply.get("name"))}
        for client, reply in answered
        for each in waiting_in(reply)
    ]


def _only_one(store: str) -> dict[str, Any]:
    with _listing(store) as listing:
        found = _requests(listing.answered)
        more = sum(number(one.reply.get("more")) for one in listing.answered)
        if len(found) == 1 and not more and not listing.left_out:
            return found[0]
        if listing.left_out:
            raise SessionError(
                "some sessions did not answer, so an id is needed", "see sigwrap approvals"
            )
        if not found:
            raise SessionError(f"no approval requests in the running sessions of {store}")
        ids = [text(each.get("id")) for each in found]
        raise SessionError(
            f"{len(found) + more} approval requests are open: give an id",
            printable(f"{', '.join(ids[:_IDS_SHOWN])}; sigwrap approvals shows them"),
        )


def _confirm(request: dict[str, Any], store: str) -> None:
    """Another one may wait by now than the one that was last seen."""
    refuse_inside(_INSIDE)
    if not sys.stdin.isatty():
        raise UsageError(
            "no id given, and no terminal to confirm on",
            "give the id, or use sigwrap approve --yes",
        )
    out(_rendered(request, store))
    if not typer.confirm("sigwrap: approve this request?", err=True):
        raise typer.Abort


def _tell(reply: ControlReply, session_id: str) -> None:
    settled = texts(reply.get("settled")) or [""]
    others = f" (and {len(settled) - 1} identical requests)" if len(settled) > 1 else ""
    said = "approved" if reply.get("granted") else "denied"
    message = f": {reply['message']}" if reply.get("message") else ""
    out(printable(f"{settled[0]} {said}{others} in session {session_id}{message}"))
    out(f"  {printable(str(reply.get('what', '')))}")


def _leave_out(failure: Unreachable) -> None:
    note(f"skipped: {printable(str(failure))}")
