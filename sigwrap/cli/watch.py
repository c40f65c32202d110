"""watch: all sessions on a terminal, or their open approval requests as text or JSON."""

from __future__ import annotations

import json
import os
import select
from enum import Enum
from typing import Annotated

import typer

from sigwrap.cli.approvals import print_request, print_requests
from sigwrap.cli.control import refuse_inside
from sigwrap.cli.group import App
from sigwrap.cli.options import StoreOption, watched_store
from sigwrap.cli.output import out
from sigwrap.errors import UsageError, from_signal
from sigwrap.kernel import procfs
from sigwrap.watch.documents import board_document, events_document
from sigwrap.watch.notify import Notifier
from sigwrap.watch.source import Source

_LINES = 1_000


class Format(Enum):
    TEXT = "text"
    JSON = "json"
    JSONL = "jsonl"


app = App()


@app.command()
def watch(
    store: StoreOption = None,
    form: Annotated[
        Format | None,
        typer.Option(
            "--format",
            help="text, json: print the open requests once; jsonl: print every change "
            "[default: the screen, or text without a terminal]",
        ),
    ] = None,
    full: Annotated[
        str, typer.Option("--full", metavar="ID", help="Print one request in full")
    ] = "",
    notify: Annotated[
        str,
        typer.Option(
            "--notify",
            metavar="COMMAND",
            help="Shell command to run for each approval request ($SIGWRAP_QUESTION has its "
            "text), or: bell",
        ),
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", hidden=True, help="An old name")] = False,
    screen: Annotated[bool, typer.Option("--watch", hidden=True, help="An old name")] = False,
) -> int:
    """Watch, approve and stop sessions in the terminal.

    Keys: y approve, a approve for the session, n deny, m deny with a message, v show the whole
    request, s stop a session, K kill switch (asks first, then ends all your sessions), ? all keys,
    q quit. While sigwrap watch is open, sessions without a terminal send their requests here. You
    can't approve in a multiplexer that a session runs in: the session could press the keys.
    """
    folder = watched_store(store)
    if as_json:  # the old name: of JSON lines, or of JSON where `approvals` was the old command
        form = Format.JSON if form is Format.TEXT or full else Format.JSONL
    if full:
        print_request(folder, full, as_json=form is Format.JSON)
    elif form is Format.JSONL:
        _print_changes(folder, notify)
    elif screen or (form is None and _is_terminal()):
        return _show(folder, notify)
    elif notify:
        raise UsageError("--notify needs a terminal, or --format jsonl")
    else:
        print_requests(folder, as_json=form is Format.JSON)
    return 0


def _is_terminal() -> bool:
    is_dumb = os.environ.get("TERM", "") in ("", "dumb")
    return os.isatty(0) and os.isatty(1) and not is_dumb


def _show(store: str, notify: str) -> int:
    refuse_inside("processes in a session can't watch or approve")
    if not _is_terminal():
        raise UsageError("this command needs an interactive terminal", "or use --format")
    from sigwrap.watch.terminal.watching import Screen, Watching

    source = _source(store, attends=True)
    try:
        number = Watching(store, source, Screen(0, 1), notify).run()
    finally:
        source.close()
    return from_signal(number) if number else 0


def _source(store: str, *, attends: bool) -> Source:
    procfs.hold()
    procfs.require()
    source = Source(store)
    source.attend(attends)
    source.start()
    return source


def _print_changes(store: str, notify: str) -> None:
    """Print a line of JSON for each change, until the reader leaves.

    Sessions count on an approver only if --notify tells one: the reader is a program.
    """
    refuse_inside("processes in a session can't watch sessions")
    source = _source(store, attends=bool(notify))
    notifier = Notifier(notify, store, lambda: None)
    seqs: dict[str, int] = {}
    poll = select.poll()
    poll.register(source.wakes, select.POLLIN)
    poll.register(1, 0)  # reports that the reader has left
    try:
        while True:
            board = source.board()
            notifier.look(board)
            out(json.dumps(board_document(board)))
            for seen in board.sessions:
                lines, left_out = source.lines(seen.id, seqs.get(seen.id, 0), _LINES)
                if lines:
                    seqs[seen.id] = lines[-1].seq
                    out(json.dumps(events_document(seen.id, lines, left_out)))
            if any(fd == 1 for fd, _ in poll.poll()):
                return
            source.calm()
    finally:
        source.close()
