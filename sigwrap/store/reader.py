"""A session's log, whether its writer is running, has ended, or was killed half-way.

The journal has all of it until the writer has put the whole database in its place, and ends. What a
writer that was killed leaves is the journal, and a database that lags behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from sigwrap.errors import StoreError
from sigwrap.events import Event
from sigwrap.store.codec import Row, decode_row
from sigwrap.store.database import opened
from sigwrap.store.journal import writer_lives
from sigwrap.store.journal_reader import JournalFile
from sigwrap.store.location import journal_path

_STANDSTILL = ("tree_frozen", "tree_thawed")


class Session:
    def __init__(self, session_id: str, path: str) -> None:
        self.id = session_id
        self.path = path

    @property
    def running(self) -> bool:
        return writer_lives(journal_path(self.path))

    def events(self, after_seq: int = 0) -> Iterator[Event]:
        try:
            yield from map(decode_row, self.rows(after_seq))
        except StoreError as error:
            raise self._named(error) from error

    def rows(self, after_seq: int = 0) -> Iterator[Row]:
        with self._journal() as journal:
            if journal is not None and not journal.is_empty:
                yield from (row for row in journal.rows() if row.seq > after_seq)
                return
        with opened(self.path) as database:
            yield from database.rows(after_seq)

    def first(self) -> Event | None:
        return next(self.events(), None)

    def last(self) -> Event | None:
        """Without reading what lies before it."""
        with self._journal() as journal:
            row = None if journal is None else journal.last()
        if row is None:
            with opened(self.path) as database:
                row = database.last()
        try:
            return None if row is None else decode_row(row)
        except StoreError as error:
            raise self._named(error) from error

    @property
    def is_stopped(self) -> bool:
        """As a whole; as far as the latest events tell. A stopped session has few."""
        with self._journal() as journal:
            latest = [] if journal is None else journal.latest()
        types = (row.type for row in reversed(latest) if row.type in _STANDSTILL)
        return next(types, "") == "tree_frozen"

    def _named(self, error: StoreError) -> StoreError:
        if self.path in error.message or journal_path(self.path) in error.message:
            return error
        return StoreError(f"{self.path}: {error.message}", error.hint)

    @contextmanager
    def _journal(self) -> Iterator[JournalFile | None]:
        journal = JournalFile.open(journal_path(self.path))
        if journal is None:
            yield None
            return
        with closing(journal):
            yield journal
