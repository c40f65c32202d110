"""The session's database as a reader sees it, whichever program made it.

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
from contextlib import closing, contextmanager
from functools import partial
from itertools import takewhile
from operator import itemgetter, lt
from urllib.parse import quote

from sigwrap.errors import StoreError
from sigwrap.hints import Any
from sigwrap.linux.descriptors import open_plain_file
from sigwrap.store.codec import MAX_PAYLOAD_CHARACTERS, Row
from sigwrap.store.schema import APPLICATION_ID, EVENTS_TABLE, SCHEMA_VERSION

PATIENCE_S = 10.0
_STEPS_BETWEEN_LOOKS = 10_000
_MAGIC = b"SQLite format 3\0"

_ROWS_AT_ONCE = 2_000
_BYTES_AT_ONCE = 4 << 20  # a row of recorded input or output is a thousand times another's size
_ROWS_A_LOOK = 32
_SELECT = "SELECT seq, time_ns, type, pid, payload, hash FROM events"
_ROW: Callable[[tuple[Any, ...]], Row] = partial(tuple.__new__, Row)  # as many as _SELECT names
_SEQ = itemgetter(Row._fields.index("seq"))
_PAYLOAD = itemgetter(Row._fields.index("payload"))


class Database:
    def __init__(self, path: str, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection

    def rows(self, after_seq: int) -> Iterator[Row]:
        query = f"{_SELECT} WHERE seq > ? ORDER BY seq LIMIT {_ROWS_AT_ONCE}"
        while rows := self._fetch(query, after_seq):
            seqs = [after_seq, *map(_SEQ, rows)]
            in_order = list(takewhile(bool, map(lt, seqs, seqs[1:])))
            yield from rows[: len(in_order)]
            if len(in_order) < len(rows):
                raise StoreError(f"can't read {self._path}: its rows are out of order")
            after_seq = seqs[-1]

    def first(self) -> Row | None:
        return next(iter(self._fetch(f"{_SELECT} ORDER BY seq LIMIT 1")), None)

    def last(self) -> Row | None:
        return next(iter(self._fetch(f"{_SELECT} ORDER BY seq DESC LIMIT 1")), None)

    def _fetch(self, query: str, *values: int) -> list[Row]:
        try:
            return self._fetched(query, *values)
        except sqlite3.OperationalError as error:
            if self._connection.text_factory is not str:
                raise self._unreadable(error) from error
            # A row that is not UTF-8 would fail all rows that are fetched with it. With replaced
            # characters the row is there, and its hash does not match.
            self._connection.text_factory = _utf8_as_far_as_it_is
            return self._fetch(query, *values)
        except sqlite3.Error as error:
            raise self._unreadable(error) from error

    def _fetched(self, query: str, *values: int) -> list[Row]:
        rows: list[Row] = []
        size = 0
        try:
            with _limited(self._connection), closing(self._connection.execute(query, values)) as at:
                while size < _BYTES_AT_ONCE and (some := at.fetchmany(_ROWS_A_LOOK)):
                    rows += map(_ROW, some)
                    size += sum(map(len, map(_PAYLOAD, some)))
            return rows
        except TypeError as error:
            raise StoreError(f"can't read {self._path}: a payload is not text") from error

    def _unreadable(self, error: sqlite3.Error) -> StoreError:
        return StoreError(f"can't read {self._path}: {error}")


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


def _utf8_as_far_as_it_is(text: bytes) -> str:
    return text.decode(errors="replace")


def _connect(path: str) -> sqlite3.Connection:
    wal = path + "-wal"
    if os.path.lexists(wal) and os.lstat(wal).st_size:
        raise StoreError(
            f"can't read {path}: another program wrote rows to {wal}",
            f"to merge them: sqlite3 {path} 'PRAGMA journal_mode = DELETE'",
        )
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
    connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS_BETWEEN_LOOKS)
    try:
        yield
    finally:
        connection.set_progress_handler(None, 0)
