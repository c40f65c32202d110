"""A session's log, whether its writer is running, has ended, or was killed half-way.

The database may lag behind the journal, and the journal is emptied once the database has its rows.
So the journal is copied first and the database read second: together they hold every row.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import quote

from sigwrap.errors import StoreError
from sigwrap.events import Event
from sigwrap.store.codec import Row, decode_row
from sigwrap.store.journal import writer_lives
from sigwrap.store.journal_copy import copy_journal, journal_rows
from sigwrap.store.location import journal_path
from sigwrap.store.schema import APPLICATION_ID, SCHEMA_VERSION

# Rows are fetched in pieces, so that a slow reader (a replay takes hours) keeps no transaction
# open: the writer couldn't reuse its WAL meanwhile.
_ROWS_AT_ONCE = 2_000
_BYTES_AT_ONCE = 4 << 20  # a row of recorded input or output is a thousand times another's size
_ROWS_A_LOOK = 32
_SELECT = "SELECT seq, time_ns, type, pid, payload, hash FROM events"


class Session:
    def __init__(self, session_id: str, path: str) -> None:
        self.id = session_id
        self.path = path

    @property
    def running(self) -> bool:
        return writer_lives(journal_path(self.path))

    def events(self, after_seq: int = 0) -> Iterator[Event]:
        return map(decode_row, self.rows(after_seq))

    def rows(self, after_seq: int = 0) -> Iterator[Row]:
        with (
            copy_journal(journal_path(self.path)) as journal,
            closing(self._connect()) as database,
        ):
            waiting = (row for row in journal_rows(journal) if row.seq > after_seq)
            yield from _merged(self._database_rows(database, after_seq), waiting)

    def first(self) -> Event | None:
        return next(self.events(), None)

    def last(self) -> Event | None:
        """Without reading what lies before it."""
        row: Row | None = None
        with copy_journal(journal_path(self.path)) as journal:
            with closing(self._connect()) as database:
                for found in self._fetch(database, f"{_SELECT} ORDER BY seq DESC LIMIT 1"):
                    row = found
            for waiting in journal_rows(journal):
                if row is None or waiting.seq > row.seq:
                    row = waiting
        return None if row is None else decode_row(row)

    def contradiction(self) -> int | None:
        """The first row that the database lacks, or holds otherwise than the journal does."""
        with (
            copy_journal(journal_path(self.path)) as journal,
            closing(self._connect()) as database,
        ):
            for row in journal_rows(journal):
                # This row, or, where it is missing, the one that follows.
                query = f"{_SELECT} WHERE seq >= ? ORDER BY seq LIMIT 1"
                for stored in self._fetch(database, query, row.seq):
                    if stored != row:
                        return row.seq
        return None

    def _database_rows(self, database: sqlite3.Connection, after_seq: int) -> Iterator[Row]:
        query = f"{_SELECT} WHERE seq > ? ORDER BY seq LIMIT {_ROWS_AT_ONCE}"
        while rows := self._fetch(database, query, after_seq):
            yield from rows
            after_seq = rows[-1].seq

    def _fetch(self, database: sqlite3.Connection, query: str, *values: int) -> list[Row]:
        rows: list[Row] = []
        size = 0
        try:
            with closing(database.execute(query, values)) as cursor:
                while size < _BYTES_AT_ONCE and (some := cursor.fetchmany(_ROWS_A_LOOK)):
                    rows += map(Row._make, some)
                    size += sum(len(row[4]) for row in some)
            return rows
        except sqlite3.Error as error:
            raise StoreError(f"can't read {self.path}: {error}") from error

    def _connect(self) -> sqlite3.Connection:
        if not os.path.isfile(self.path):
            raise StoreError(f"there is no event log {self.path}")
        database = None
        try:
            database = sqlite3.connect(f"file:{quote(self.path)}?mode=ro", uri=True)
            application_id = database.execute("PRAGMA application_id").fetchone()[0]
            schema_version = database.execute("PRAGMA user_version").fetchone()[0]
        except sqlite3.Error as error:
            if database is not None:
                database.close()
            raise StoreError(
                f"can't read {self.path}: {error}",
                "a log whose writer was killed can only be read in a folder that can be written"
                if os.path.exists(self.path + "-wal")
                else "",
            ) from error
        if application_id == APPLICATION_ID and schema_version <= SCHEMA_VERSION:
            return database
        database.close()
        if application_id == APPLICATION_ID:
            raise StoreError(f"{self.path} was written by a newer sigwrap", "read it with that")
        if application_id == schema_version == 0 and self.running:
            raise StoreError(f"{self.path} has only just been begun", "try again")
        raise StoreError(f"{self.path} is not an event log of sigwrap")


def _merged(stored: Iterator[Row], waiting: Iterator[Row]) -> Iterator[Row]:
    """All rows in order of seq; of a row in both places, the database's. The journal's rows come
    last: only in a database that was tampered with do they fill gaps."""
    held = next(waiting, None)
    for row in stored:
        while held is not None and held.seq <= row.seq:
            if held.seq < row.seq:
                yield held
            held = next(waiting, None)
        yield row
    if held is not None:
        yield held
        yield from waiting
