"""Read several sessions in one command, and report those that cannot be read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from sigwrap.cli.output import note
from sigwrap.cli.showing import Progress
from sigwrap.errors import SessionError, SigwrapError, StoreError, UsageError
from sigwrap.events import Event
from sigwrap.log.catalog import list_sessions, open_session
from sigwrap.log.reader import Session

Item = TypeVar("Item")
SessionsArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[SESSION…]",
        help="Session ids, their unique starts or ends, session names, or log files "
        "[default: the latest session]",
    ),
]
AllOption = Annotated[bool, typer.Option("--all", help="Read every session in the store")]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Output file, written completely or not at all",
    ),
]


class Several:
    """The chosen sessions.

    An unreadable session is an error if it is the only one. Otherwise it costs one line, and the
    exit status is 1.
    """

    def __init__(self, store: str, selectors: Iterable[str], every: bool) -> None:
        self._has_problems = False
        selectors = list(selectors)
        if every and selectors:
            raise UsageError("--all and SESSION can't be combined")
        found = (
            self._all(store) if every else [open_session(store, each) for each in selectors or [""]]
        )
        self.sessions = list({os.path.realpath(each.path): each for each in found}.values())
        self._only_one = not every and len(self.sessions) == 1

    def _all(self, store: str) -> list[Session]:
        files = list_sessions(store)
        if not files:
            raise SessionError(f"there are no sessions in {store}", "choose another with --store")
        for file in files:
            if file.problem and not file.running:
                self._say(f"skipped {file.id}: {file.problem}")
        readable = [Session(file.id, file.path) for file in files if not file.problem]
        if not readable:
            raise StoreError(f"no session in {store} can be read")
        return readable

    @property
    def paths(self) -> list[str]:
        return [path for each in self.sessions for path in each.files]

    def read(self, reader: Callable[[Session, Callable[[int], None]], None]) -> None:
        """Call `reader` with each session and a function that takes the number of events read."""
        progress = Progress()
        total = len(self.sessions)
        try:
            for number, session in enumerate(self.sessions, 1):
                which = f" ({number} of {total} sessions)" if total > 1 else ""

                def seen(events: int, which: str = which, session: Session = session) -> None:
                    progress.say(f"reading {session.id}: {events:,} events{which}")

                try:
                    reader(session, seen)
                except StoreError as error:
                    progress.done()
                    self._damaged(session, error)
        finally:
            progress.done()

    def events(self) -> Iterator[tuple[Session, Event]]:
        return self.each(Session.events)

    def each(self, of: Callable[[Session], Iterator[Item]]) -> Iterator[tuple[Session, Item]]:
        """Yield what `of` yields of each session."""
        for session in self.sessions:
            try:
                for item in of(session):
                    yield session, item
            except StoreError as error:
                self._damaged(session, error)

    def _damaged(self, session: Session, error: SigwrapError) -> None:
        if self._only_one:
            raise error
        self._say(f"read only the start of {session.id}: {error}")

    def _say(self, line: str) -> None:
        self._has_problems = True
        note(line)

    def finish(self) -> None:
        if self._has_problems:
            raise typer.Exit(1)
