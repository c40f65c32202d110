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
        help="Run where something comes to wait, by sh, with the question in $SIGWRAP_QUESTION; "
        "or: bell.",
        show_default=False,
    ),
]


def register(app: typer.Typer) -> None:
    app.command(epilog=examples("watch"))(watch)


def watch(
    store: StoreOption = None,
    notify: NotifyOption = "",
    as_json: Annotated[
        bool, typer.Option("--json", help="For a program: a line of JSON for whatever is new.")
    ] = False,
) -> int:
    """Watch all sessions, answer what they ask, and stop them.

    Keys: y yes, a yes for the session, n no, m no with a message, v all of a question, s stop a
    session, K kill switch (ends every session of yours; it asks), ? all keys, q leave. While it is
    open, sessions ask here also where they have no terminal. In the multiplexer that a session
    runs in, it takes no yes: the session could type it.
    """
    folder = watched_store(store)
    if as_json:
        _tell(folder, notify)
        return 0
    return show(folder, notify, only_questions=False)


def watched_store(option: str | None) -> str:
    """One that is named has to be there: who mistyped it would watch nothing."""
    return store_folder(None) if option is None else existing_store(option)


def show(store: str, notify: str, *, only_questions: bool) -> int:
    refuse_inside("nobody inside a session watches and answers")
    if not (os.isatty(0) and os.isatty(1)) or os.environ.get("TERM", "") in ("", "dumb"):
        raise UsageError(
            "this needs a terminal whose cursor can be moved",
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
    refuse_inside("nobody inside a session watches")
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
