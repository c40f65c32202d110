"""A session's log, whether its writer is running, has ended, or was killed.

The journal has every event until the writer has put the complete database in place and ends. A
killed writer leaves the journal, and a database that lags behind. A database that ends with
session_ended is complete: a journal beside it without a writer is ignored, because any process of
the user could have put it there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from sigwrap.errors import StoreError
from sigwrap.events import HOOK_KIND, Event
from sigwrap.store.codec import Row, decode_row
from sigwrap.store.database import last_row, opened
from sigwrap.store.journal import writer_lives
from sigwrap.store.journal_reader import JournalFile
from sigwrap.store.location import SESSIONS_FOLDER, journal_path

_STANDSTILL = ("tree_frozen", "tree_thawed")


class Session:
    def __init__(self, session_id: str, path: str) -> None:
        self.id = session_id
        self.path = path

    @property
    def running(self) -> bool:
        return writer_lives(journal_path(self.path))

    @property
    def files(self) -> tuple[str, str]:
        return self.path, journal_path(self.path)

    @property
    def size(self) -> int:
        """Return the size of all its files in bytes."""
        total = 0
        for path in self.files:
            try:
                total += os.stat(path).st_size
            except OSError:
                pass  # there is no such file, or no longer
        return total

    @property
    def has_journal(self) -> bool:
        """Return whether the journal is there: until the writer ends or the log is recovered.

        A copy such as a checkpoint has none.
        """
        return os.path.exists(journal_path(self.path))

    @property
    def lies_among_sessions(self) -> bool:
        """Return whether the log is in a store's folder of sessions, which holds no copies."""
        return os.path.basename(os.path.dirname(os.path.abspath(self.path))) == SESSIONS_FOLDER

    def events(
        self, after_seq: int = 0, *, of: Callable[[object], bool] | None = None
    ) -> Iterator[Event]:
        """Yield the events, or only those whose type meets `of`; others are not decoded."""
        rows = self.rows(after_seq)
        if of is not None:
            rows = (row for row in rows if of(row.type))
        try:
            yield from map(decode_row, rows)
        except StoreError as error:
            raise self._named(error) from error

    def rows(self, after_seq: int = 0) -> Iterator[Row]:
        with self._journal() as journal:
            if journal is not None and not journal.is_empty:
                yield from (row for row in journal.rows() if row.seq > after_seq)
                return
        with opened(self.path) as database:
            yield from database.rows(after_seq)

    def readable_rows(self, of: Callable[[object], bool]) -> Iterator[Row]:
        """Yield the rows of these types as they are written, each once it could be decoded."""
        try:
            for row in self.rows():
                if of(row.type):
                    decode_row(row)
                    yield row
        except StoreError as error:
            raise self._named(error) from error

    def row_of_the_lagging_database(self) -> Row | None:
        """Return the database's last row if rows come from the journal, which must have it too.

        Call it before reading the journal, which grows first.
        """
        with self._journal() as journal:
            return None if journal is None or journal.is_empty else last_row(self.path)

    def first_stray_row(self) -> int:
        """Return the first row of a journal beside a complete database that differs, or 0."""
        journal = JournalFile.open(journal_path(self.path))
        if journal is None:
            return 0
        with closing(journal):
            return first_stray_row(journal, self.path) if self._is_whole else 0

    def followed(self, wait: Callable[[], None]) -> Iterator[Event]:
        """Yield each event as it is recorded, until the writer is gone; `wait` waits for more."""
        seq = 0
        is_running = True
        while is_running:
            is_running = self.running
            with self._journal() as journal:
                if journal is None:
                    break
                while True:
                    for row in journal.new_rows():
                        if row.seq > seq:
                            seq = row.seq
                            yield self._decoded(row)
                    if not is_running or not journal.is_in_place:
                        break
                    wait()
                    is_running = self.running  # what it recorded last is read once more
        yield from self.events(after_seq=seq)

    def first(self) -> Event | None:
        return self.ends()[0]

    def last(self) -> Event | None:
        return self.ends()[1]

    def ends(self) -> tuple[Event | None, Event | None]:
        """Return the first and the last event without reading those between."""
        with self._journal() as journal:
            last = None if journal is None else journal.last()
            first = None if journal is None or last is None else next(journal.rows(), None)
        if last is None:
            with opened(self.path) as database:
                first, last = database.first(), database.last()
        return (
            None if first is None else self._decoded(first),
            None if last is None else self._decoded(last),
        )

    @property
    def is_of_hooks(self) -> bool:
        """Return whether this is the log of an agent's hooks, which has no writer of its own."""
        try:
            first = self.first()
        except StoreError:
            return False
        return first is not None and first.payload.get("kind") == HOOK_KIND

    @property
    def is_stopped(self) -> bool:
        """Return whether all of it is stopped, by its latest events; a stopped session has few."""
        with self._journal() as journal:
            latest = [] if journal is None else journal.latest()
        types = (row.type for row in reversed(latest) if row.type in _STANDSTILL)
        return next(types, "") == "tree_frozen"

    def _decoded(self, row: Row) -> Event:
        try:
            return decode_row(row)
        except StoreError as error:
            raise self._named(error) from error

    def _named(self, error: StoreError) -> StoreError:
        if self.path in error.message or journal_path(self.path) in error.message:
            return error
        return StoreError(f"{self.path}: {error.message}", error.hint)

    @property
    def _is_whole(self) -> bool:
        """Return whether the database has the end of the log, and no writer is running."""
        return not self.running and is_end(last_row(self.path))

    @contextmanager
    def _journal(self) -> Iterator[JournalFile | None]:
        journal = JournalFile.open(journal_path(self.path))
        if journal is None:
            yield None
            return
        with closing(journal):
            yield None if self._is_whole else journal


def is_end(row: Row | None) -> bool:
    return row is not None and row.type == "session_ended"


def first_stray_row(journal: JournalFile, database_path: str) -> int:
    seq = 0
    with opened(database_path) as database:
        try:
            others = database.rows(0)
            for row in journal.rows():
                seq += 1
                if row != next(others, None):
                    return seq
        except StoreError:
            return seq + 1
    return 0
