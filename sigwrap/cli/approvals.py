"""approvals, approve, deny: ask the running sessions, and say what they reply."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from sigwrap.cli.control import check, refuse_inside
from sigwrap.cli.examples import examples
from sigwrap.cli.group import Group
from sigwrap.cli.options import JsonOption, StoreOption, store_folder
from sigwrap.cli.output import note, out
from sigwrap.errors import SessionError
from sigwrap.escape import note_on_order, printable, rows, shell_words
from sigwrap.events import number, texts
from sigwrap.mediate.questions import wants
from sigwrap.protocols.control import ControlReply, ControlRequest
from sigwrap.protocols.control_client import Answered, Unreachable, ask_everybody
from sigwrap.report.forms.times import span
from sigwrap.run.asking.wording import Session, store_option
from sigwrap.tuples import NamedTuple

APPROVALS_SCHEMA = "sigwrap.approvals/1"
_FAILURES_SHOWN = 5
_OF_THOSE = " in the sessions that answer"
_INSIDE = "refused: it is inside a supervised session"

_approvals = typer.Typer(
    cls=Group,
    invoke_without_command=True,
    rich_markup_mode=None,
    epilog=examples("approvals"),
    help="Show what waits for an answer.",
)

IdArgument = Annotated[
    str, typer.Argument(metavar="ID", help="As sigwrap approvals shows it.", show_default=False)
]


def register(app: typer.Typer) -> None:
    app.add_typer(_approvals, name="approvals")
    app.command(epilog=examples("approve"))(approve)
    app.command(epilog=examples("deny"))(deny)


@_approvals.callback()
def approvals(
    context: typer.Context,
    full: Annotated[
        str, typer.Option("--full", metavar="ID", help="Show all of this request, uncut.")
    ] = "",
    store: StoreOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what waits for an answer, in all running sessions of the store."""
    if full:
        _show_one(store_folder(store), full, as_json)
    elif context.invoked_subcommand is None:
        _show(store_folder(store), as_json)
    else:
        context.obj = (store, as_json)


@_approvals.command("list")
def list_approvals(
    context: typer.Context, store: StoreOption = None, as_json: JsonOption = False
) -> None:
    """Show what waits for an answer (the same as: sigwrap approvals)."""
    outer_store, outer_as_json = context.obj
    _show(store_folder(outer_store if store is None else store), as_json or outer_as_json)


def approve(
    approval_id: IdArgument,
    always: Annotated[
        bool, typer.Option("--always", help="And the same again, for this session.")
    ] = False,
    store: StoreOption = None,
) -> None:
    """Let a waiting exec, signal or connection go on."""
    _answer(store_folder(store), {"do": "approve", "id": approval_id, "always": always})


def deny(
    approval_id: IdArgument,
    message: Annotated[
        str, typer.Option("--message", metavar="M", help="What the asker is told.")
    ] = "",
    store: StoreOption = None,
) -> None:
    """Refuse a waiting exec, signal or connection."""
    _answer(store_folder(store), {"do": "deny", "id": approval_id, "message": message})


def _show(store: str, as_json: bool) -> None:
    refuse_inside(_INSIDE)
    requests: list[dict[str, Any]] = []
    more = 0
    with _listing(store) as listing:
        for client, reply in listing.answered:
            requests += [{**each, "session_id": client.session_id} for each in _requests(reply)]
            more += number(reply.get("more"))
    if as_json:
        out(_document(requests, more, listing.left_out))
    elif not requests:
        out(f"nothing waits for an answer{_OF_THOSE if listing.left_out else ''}")
    else:
        for request in requests:
            out(_rendered(request, store))
        if more:
            out(f"and {more} more")


def _show_one(store: str, wanted: str, as_json: bool) -> None:
    refuse_inside(_INSIDE)
    reply, session_id = _first_that_knows(store, {"do": "show", "id": wanted})
    shown = reply.get("request")
    request = {**(shown if isinstance(shown, dict) else {}), "session_id": session_id}
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
    with ask_everybody(store, {"do": "list"}) as (answered, failures):
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
            note(f"and {len(said) - _FAILURES_SHOWN} more are left out")
        if last is not None:
            raise last
        yield _Listing(good, failures)


def _requests(reply: ControlReply) -> list[dict[str, Any]]:
    found = reply.get("requests")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _rendered(request: dict[str, Any], store: str) -> str:
    def text(name: str) -> str:
        return printable(str(request.get(name, "")))

    left_s = request.get("expires_in_s")
    left = span(int(left_s * 1e9) if isinstance(left_s, (int, float)) and left_s < 1e9 else 0)
    policy = f" of {text('policy')}" if request.get("policy") else ""
    message = f": {text('message')}" if request.get("message") else ""
    lines = [
        f"{text('id')}  {shell_words([str(request.get('process', ''))])} "
        f"(pid {text('pid')}, depth {text('depth')}) {wants(request.get('kind'))} {text('what')}"
    ]
    if request.get("is_cut") is True:
        session = Session(text("policy"), store_option(os.path.abspath(store), os.environ))
        lines.append(f"all that is known: {session.command('approvals', '--full', text('id'))}")
    files = [shell_words([str(file)]) for file in texts(request.get("files"))]
    if files:
        lines.append(f"file {', then '.join(files)}")
    lines += [f"{name} {text(name)}" for name in ("runs", "loads") if request.get(name)]
    if request.get("folder"):
        lines.append(f"folder {shell_words([str(request['folder'])])}")
    if request.get("note"):
        lines.append(f"note {text('note')}")
    if order := note_on_order(lines):
        lines.append(f"note {order}")
    lines.append(f"rule {text('rule')}{policy}{message}; session {text('session_id')}; {left} left")
    lines = [lines[0], *(f"        {line}" for line in lines[1:])]
    try:
        columns = os.get_terminal_size(1).columns
    except OSError:  # no terminal: nothing breaks them there
        return "\n".join(lines)
    return "\n".join(row for line in lines for row in rows(line, columns))


def _answer(store: str, request: ControlRequest) -> None:
    reply, session_id = _first_that_knows(store, request)
    _tell(reply, session_id)
    if request.get("always") and reply.get("granted") and reply.get("always") is False:
        note("only once: what lies in another root, or isn't known whole, is asked about each time")


def _first_that_knows(store: str, request: ControlRequest) -> tuple[ControlReply, str]:
    """Its reply, and which session it is."""
    wanted = request["id"]
    open_ids: list[str] = []
    late = ""
    failures: list[Unreachable] = []  # of sessions that may have it
    with _listing(store) as listing:

        def lists_it(each: Answered) -> bool:
            return any(listed.get("id") == wanted for listed in _requests(each.reply))

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
            f"there is no request {wanted!r}{_OF_THOSE}", "it may wait in one that was left out"
        )
    if not open_ids:
        raise SessionError(
            f"there is no request {wanted!r}, and nothing else waits in a running session of "
            f"{store}",
            "a session that is over takes no answers",
        )
    nearest = difflib.get_close_matches(wanted, open_ids, n=1, cutoff=0.5)
    hint = f"did you mean {nearest[0]}?" if nearest else f"there is {', '.join(open_ids[:5])}"
    raise SessionError(f"there is no request {wanted!r}", printable(hint))


def _tell(reply: ControlReply, session_id: str) -> None:
    settled = texts(reply.get("settled")) or [""]
    others = f" (and {len(settled) - 1} more of the same)" if len(settled) > 1 else ""
    said = "approved" if reply.get("granted") else "denied"
    message = f": {reply['message']}" if reply.get("message") else ""
    out(printable(f"{settled[0]} {said}{others} in session {session_id}{message}"))
    out(f"  {printable(str(reply.get('what', '')))}")


def _leave_out(failure: Unreachable) -> None:
    note(f"{printable(str(failure))}; it is left out")
