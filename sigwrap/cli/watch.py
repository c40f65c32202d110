"""watch: all sessions on a terminal, and answers to what they ask."""

from __future__ import annotations

import json
import os
import select
from typing import Annotated

import typer

from sigwrap.cli.control import refuse_inside
from sigwrap.cli.examples import examples
from sigwrap.cli.options import StoreOption, existing_store, store_folder
from sigwrap.cli.output import out
from sigwrap.errors import UsageError
from sigwrap.linux import proc_files
from sigwrap.status import from_signal
from sigwrap.watch.documents import board_document, events_document
from sigwrap.watch.source import Source
from sigwrap.watch.telling import Telling

NotifyOption = Annotated[
    str,
    typer.Option(
        "--notify",
        metavar="COMMAND",
        help="Shell command to run for each approval request ($SIGWRAP_QUESTION has its text), "
        "or: bell",
        show_default=False,
    ),
]


def register(app: typer.Typer) -> None:
    app.command(epilog=examples("watch"))(watch)


def watch(
    store: StoreOption = None,
    notify: NotifyOption = "",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a line of JSON for every change")
    ] = False,
) -> int:
    """Watch, approve and stop sessions in the terminal.

    Keys: y approve, a approve for the session, n deny, m deny with a message, v show the whole
    request, s stop a session, K kill switch (asks first, then ends all your sessions), ? all keys,
    q quit. While sigwrap watch is open, sessions without a terminal send their requests here. You
    can't approve in a multiplexer that a session runs in: the session could press the keys.
    """
    folder = watched_store(store)
    if as_json:
        _tell(folder, notify)
        return 0
    return show(folder, notify, only_questions=False)


def watched_store(option: str | None) -> str:
    """Return the store; an error where the user named one that does not exist."""
    return store_folder(None) if option is None else existing_store(option)


def show(store: str, notify: str, *, only_questions: bool) -> int:
    refuse_inside("processes in a session can't watch or approve")
    if not (os.isatty(0) and os.isatty(1)) or os.environ.get("TERM", "") in ("", "dumb"):
        raise UsageError(
            "this command needs an interactive terminal",
            "for a script: sigwrap watch --json, or sigwrap approvals --json",
        )
    from sigwrap.watch.terminal.screen import Screen
    from sigwrap.watch.terminal.watching import Watching

    source = _source(store, attends=True)
    try:
        number = Watching(store, source, Screen(0, 1), notify, only_questions=only_questions).run()
    finally:
        source.close()
    return from_signal(number) if number else 0


def _source(store: str, *, attends: bool) -> Source:
    proc_files.hold()
    proc_files.require()
    source = Source(store)
    source.attend(attends)
    source.start()
    return source


def _tell(store: str, notify: str) -> None:
    """Of a program nobody knows whether somebody looks at what it makes of this: it attends only
    where somebody is told by --notify."""
    refuse_inside("processes in a session can't watch sessions")
    source = _source(store, attends=bool(notify))
    telling = Telling(notify, store, lambda: None)
    seqs: dict[str, int] = {}
    poll = select.poll()
    poll.register(source.wakes, select.POLLIN)
    poll.register(1, 0)  # whoever reads may leave
    try:
        while True:
            board = source.board()
            telling.look(board)
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


_LINES = 1_000
