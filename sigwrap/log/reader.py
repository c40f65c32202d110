"""Read a session's log, whether its writer is running, has ended, or was killed.

The journal has every event until the writer has put the complete database in place and ends. A
killed writer leaves the journal, and a database that lags behind. A database that ends with
session_ended is complete: a journal beside it without a writer is ignored, because any process of
the user could have put it there.

SQLite runs what a file says: a view or a virtual table named like the table may never end, a
damaged one may take long, and files beside it (a WAL, its shared memory, a journal to roll back)
may be another program's. So only the file itself is read, and only if its table is exactly the one
that sigwrap makes. Views in the file are never read.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from urllib.parse import quote

from sigwrap.errors import StoreError
from sigwrap.events import Event
from sigwrap.kernel.descriptors import open_plain_file
from sigwrap.log.codec import MAX_PAYLOAD_CHARACTERS, Row, decode_row
from sigwrap.log.folder import journal_path
from sigwrap.log.journal import JournalFile, writer_lives
from sigwrap.log.schema import APPLICATION_ID, EVENTS_TABLE, SCHEMA_VERSION

_FREEZES = ("tree_frozen", "tree_thawed")

PATIENCE_S = 10.0
_STEPS_BETWEEN_CHECKS = 10_000
_MAGIC = b"SQLite format 3\0"
_ROWS_AT_ONCE = 32  # a row of recorded input or output is a thousand times another's size
_SELECT = "SELECT seq, time_ns, type, pid, payload, hash FROM events"
_as_row = partial(tuple.__new__, Row)  # takes half the time of Row._make


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
        total = 0
        for path in self.files:
            with suppress(OSError):  # there is no such file, or no longer
                total += os.stat(path).st_size
        return total

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
        if not self._is_whole or (journal := JournalFile.open(journal_path(self.path))) is None:
            return 0
        with closing(journal):
            return first_stray_row(journal, self.path)

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
    def is_stopped(self) -> bool:
        """Return whether all of it is stopped, by its latest events; a stopped session has few."""
        with self._journal() as journal:
            latest = [] if journal is None else journal.latest()
        types = (row.type for row in reversed(latest) if row.type in _FREEZES)
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
    """Return the first row of the journal that the database lacks or has otherwise, or 0."""
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


class Database:
    """A session's database, whichever program made it."""

    def __init__(self, path: str, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection

    def rows(self, after_seq: int) -> Iterator[Row]:
        query = f"{_SELECT} WHERE seq > ? ORDER BY seq LIMIT {_ROWS_AT_ONCE}"
        while rows := self._fetch(query, after_seq):
            for row in rows:
                if row.seq <= after_seq:
                    raise StoreError(f"can't read {self._path}: its rows are out of order")
                after_seq = row.seq
                yield row

    def first(self) -> Row | None:
        return next(iter(self._fetch(f"{_SELECT} ORDER BY seq LIMIT 1")), None)

    def last(self) -> Row | None:
        return next(iter(self._fetch(f"{_SELECT} ORDER BY seq DESC LIMIT 1")), None)

    def _fetch(self, query: str, *values: int) -> list[Row]:
        try:
            with _limited(self._connection):
                return [*map(_as_row, self._connection.execute(query, values))]
        except sqlite3.Error as error:
            is_first = self._connection.text_factory is str
            if not (isinstance(error, sqlite3.OperationalError) and is_first):
                raise StoreError(f"can't read {self._path}: {error}") from error
            # A row that is not UTF-8 would fail all rows that are fetched with it. With replaced
            # characters the row is there, and its hash does not match.
            self._connection.text_factory = partial(str, encoding="utf-8", errors="replace")
            return self._fetch(query, *values)


@contextmanager
def opened(path: str) -> Iterator[Database]:
    """Open the database; StoreError if the file is no event log."""
    try:
        open_plain_file(path).close()
        with closing(_connect(path)) as connection:
            _check(path, connection)
            yield Database(path, connection)
    except FileNotFoundError as error:
        raise StoreError(f"there is no event log {path}") from error
    except OSError as error:
        raise StoreError(f"can't read {path}: {error.strerror}") from error
    except sqlite3.Error as error:
        raise StoreError(f"can't read {path}: {error}") from error


def last_row(path: str) -> Row | None:
    """Return the last row; None also if the database is missing or damaged."""
    try:
        with opened(path) as database:
            return database.last()
    except StoreError:
        return None


def is_database(path: str) -> bool:
    """Return whether the file begins as a database, complete or not."""
    try:
        with open_plain_file(path) as file:
            return bool(file.read(len(_MAGIC)) == _MAGIC)
    except OSError:
        return False


def refuse_foreign_rows(path: str) -> None:
    """Raise StoreError if another program wrote rows to the database's WAL file."""
    wal = path + "-wal"
    if os.path.lexists(wal) and not os.path.isdir(wal) and os.lstat(wal).st_size:
        raise StoreError(
            f"can't read {path}: another program wrote rows to {wal}",
            f"to merge them: sqlite3 {path} 'PRAGMA journal_mode = DELETE'",
        )


def _connect(path: str) -> sqlite3.Connection:
    refuse_foreign_rows(path)
    uri = f"file:{quote(os.fsencode(path))}?mode=ro&immutable=1"
    connection = sqlite3.connect(uri, uri=True, isolation_level=None)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_PAYLOAD_CHARACTERS)
    for pragma in ("trusted_schema = OFF", "mmap_size = 0", "cell_size_check = ON"):
        connection.execute(f"PRAGMA {pragma}")
    return connection


def _check(path: str, connection: sqlite3.Connection) -> None:
    with _limited(connection):
        application_id = connection.execute("PRAGMA application_id").fetchone()[0]
        schema_version = connection.execute("PRAGMA user_version").fetchone()[0]
        query = "SELECT type, sql FROM sqlite_master WHERE name = 'events' LIMIT 2"
        tables = connection.execute(query).fetchall()
    if application_id == APPLICATION_ID and schema_version > SCHEMA_VERSION:
        raise StoreError(f"{path} was written by a newer sigwrap", "use that version")
    if application_id != APPLICATION_ID or tables != [("table", EVENTS_TABLE)]:
        raise StoreError(f"{path} is not an event log of sigwrap")


@contextmanager
def _limited(connection: sqlite3.Connection) -> Iterator[None]:
    """Interrupt a statement that takes longer than PATIENCE_S."""
    deadline = time.monotonic() + PATIENCE_S
    connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS_BETWEEN_CHECKS)
    try:
        yield
    finally:
        connection.set_progress_handler(None, 0)
