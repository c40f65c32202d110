"""The one writer of a session's log: record first, index when there is time.

Every exec and signal of the tree waits for `append`, which costs one JSON encoding, one hash and
one write to the journal. The database gets the rows later, in batches. Two designs were rejected: a
committed INSERT per event (20 µs instead of 5), and a thread (a queue between the decision and the
record is what loses events).

The journal has all events until the session ends. Until then, the rows go to a database file
without a name, which no other process can open. A copy of it gets its name at the end, and whenever
the log has doubled, for readers that know only SQLite. If another process changes the session's
files, they are written again from this private database.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence

from sigwrap.bare import sqlite3
from sigwrap.errors import StoreError
from sigwrap.events import Payload
from sigwrap.kernel.file_state import sets_times_at_once
from sigwrap.kernel.limits import way_to_room
from sigwrap.log.codec import (
    canonical_row,
    chain_key,
    encode_payload,
    genesis,
    hasher,
    journal_line,
    next_hash,
)
from sigwrap.log.folder import (
    ATTEMPTS,
    CHECKPOINTS_FOLDER,
    DATABASE_SUFFIX,
    JOURNAL_SUFFIX,
    Folder,
    HeldFolder,
    Interfered,
    database_path,
    new_name,
    sessions_folder,
)
from sigwrap.log.journal import Journal
from sigwrap.log.schema import TABLE_SCRIPT, TABLE_SCRIPT_OBJECTS, views_script

INDEX_BATCH = 256
# Rows stay in memory until they are in the database. Above these limits, append fails.
PENDING_LIMIT = 32_768
PENDING_LIMIT_BYTES = 64 << 20
INDEX_BATCH_BYTES = 1 << 20
INDEX_RETRY_NS = 1_000_000_000
# Copying a larger database takes too long while callers wait: it is copied at the end only.
COPIED_MEANWHILE_BYTES = 16 << 20
_ROWS_AT_ONCE = 256
_COPIED_AT_ONCE = 1 << 24

# SQLite only appends rows here and never reads them again, so a small cache that fits the
# processor's own is best: with the usual 2 MB, appending takes 1.5 times as long.
_CACHE_KIB = 256
# A recorded stream fills many pages; with the usual 4 KiB, it takes twice as long.
_PAGE_BYTES = 16 << 10
_DESCRIPTORS_CHECKED = 8

PendingRow = tuple[int, int, str, int, str, str]


class SessionLog:
    def __init__(
        self, session_id: str, key: bytes, folder: Folder, journal: Journal, *, durable: bool
    ) -> None:
        """Raise OSError or sqlite3.Error if the database can't be made."""
        self.session_id = session_id
        self.seq = 0
        self.key = key
        self._empty = hasher(key)
        self.head_bytes = genesis(session_id, key)
        self._database_name = session_id + DATABASE_SUFFIX
        self._journal_name = session_id + JOURNAL_SUFFIX
        self.path = os.path.join(folder.path, self._database_name)
        self._folder = folder
        self._journal = journal
        self._durable = durable
        self._compares_times = sets_times_at_once(folder.fd)
        self._pending: list[PendingRow] = []
        self._pending_bytes = 0
        self._retry_index_at_ns = 0
        self._rows_in_place = 0
        self._copies = 0
        self._in_place: tuple[int, ...] = ()
        self._lost = ""  # why the log could not be written again
        self._database = PrivateDatabase(folder, self._database_name)
        try:
            self._put_in_place()
        except BaseException:
            self._database.close()
            raise

    @classmethod
    def create(
        cls, store: str, session_id: str, *, key: bytes | None = None, durable: bool = False
    ) -> SessionLog:
        """Start a log; after a StoreError, nothing of it is left in the store."""
        path = database_path(store, session_id)
        database, journal_name = session_id + DATABASE_SUFFIX, session_id + JOURNAL_SUFFIX
        try:
            place = Folder.make(sessions_folder(store))
            try:
                if place.status(database) is not None:
                    raise FileExistsError(0, "File exists")
                # The journal comes first: its lock tells readers that the session has a writer.
                journal = Journal.create(place, journal_name, durable=durable)
                try:
                    return cls(session_id, chain_key(key), place, journal, durable=durable)
                except BaseException:
                    place.remove(journal_name)
                    journal.close()
                    raise
            except BaseException:
                place.close()
                raise
        except (OSError, sqlite3.Error) as error:
            raise StoreError(
                f"can't create the event log {path}: {_reason(error)}",
                way_to_room("choose a writable directory with --store or $SIGWRAP_STORE"),
            ) from error

    @property
    def head(self) -> str:
        return self.head_bytes.hex()

    @property
    def size(self) -> int:
        """Return the size of all recorded events in bytes."""
        return self._journal.size

    @property
    def pending(self) -> int:
        return len(self._pending)

    @property
    def wants_indexing(self) -> bool:
        """Return whether to index rows now, even if requests are pending."""
        return len(self._pending) >= INDEX_BATCH or self._pending_bytes >= INDEX_BATCH_BYTES

    def append(self, type_name: str, pid: int, payload: Payload, time_ns: int) -> int:
        """Record the event and return its number.

        After a StoreError the event is not recorded, and the chain is as before.
        """
        pending = self._pending
        if len(pending) >= PENDING_LIMIT or self._pending_bytes >= PENDING_LIMIT_BYTES:
            raise StoreError(
                f"can't index the event log {self.path}: {len(pending)} events wait",
                "free disk space",
            )
        if self._lost:
            raise StoreError(self._lost)
        seq = self.seq + 1
        text = encode_payload(type_name, payload)
        canonical = canonical_row(seq, time_ns, type_name, pid, text)
        head = next_hash(self.head_bytes, canonical, self._empty)
        hash_hex = head.hex()
        self._journal.append(journal_line(canonical, hash_hex))
        self.head_bytes = head
        self.seq = seq
        pending.append((seq, time_ns, type_name, pid, text, hash_hex))
        self._pending_bytes += len(text)
        return seq

    # Rows that the extension writes (exec/_repeated.c)

    @property
    def takes_rows(self) -> bool:
        """Return whether the extension may write the next rows, each with one write(2)."""
        return not (self._durable or self._lost or self.wants_indexing or self._journal.is_torn)

    @property
    def journal_fd(self) -> int:
        return self._journal.fd

    def rows_written(
        self, rows: Sequence[PendingRow], head: bytes, size: int, written_ns: int
    ) -> None:
        """Take over rows of `size` bytes in the journal; the last one was written at this time."""
        if rows:
            self.seq, self.head_bytes = rows[-1][0], head
            self._pending += rows
            self._pending_bytes += sum(len(row[4]) for row in rows)
            self._journal.was_appended(size, written_ns)

    def row_failed(self) -> StoreError:
        """Take back the part of a row that the extension may have written."""
        return self._journal.failed()

    # Indexing

    def index_rows(self, limit: int = INDEX_BATCH) -> int:
        """Move at most `limit` rows into the database; return how many are still pending.

        If the database can't be written, nothing is lost: the journal keeps the rows, and a later
        call tries again, at most once a second.
        """
        if self._pending and time.monotonic_ns() >= self._retry_index_at_ns:
            try:
                self._insert(limit)
            except (OSError, sqlite3.Error):
                self._retry_index_at_ns = time.monotonic_ns() + INDEX_RETRY_NS
        return len(self._pending)

    def checkpoint(self) -> None:
        """Copy the database to its place if the log has doubled; for idle moments."""
        if self._pending or self.seq < 2 * self._rows_in_place:
            return
        if self._database.size > COPIED_MEANWHILE_BYTES or self.objection():
            return
        self._rows_in_place = self.seq  # also if it fails: not again before it has doubled
        try:
            self._put_in_place()
        except OSError:
            pass  # the journal has everything

    # Other programs' changes

    def objection(self) -> str:
        """Return what another program did to the session's files, or an empty text."""
        if not self._folder.is_reached:
            return "its directory was removed, moved, replaced or closed"
        objection = self._journal.objection(self._folder, self._journal_name)
        if objection:
            return objection
        found = self._folder.status(self._database_name)
        if found is None:
            return "the database was removed"
        if self._identity(found) != self._in_place:
            return "the database was replaced or changed"
        return "it could not be written for a while" if self._lost else ""

    def restore(self) -> None:
        """Write the session's files again, in their place.

        If that fails, raise StoreError; every append then fails until it succeeds.
        """
        try:
            self._folder.make_again()
            self._insert_all()
            self._write_journal_again()
            self._put_in_place()
        except (OSError, sqlite3.Error, StoreError) as error:
            self._lost = f"can't rewrite the event log {self.path}: {_reason(error)}"
            raise StoreError(self._lost) from error
        self._lost = ""

    def copy(self, meanwhile: Callable[[], None] = lambda: None) -> str:
        """Copy the log as it is now to a file that is a log of its own; return its path.

        A large log takes a while, so `meanwhile` is called at intervals. A StoreError leaves the
        log itself as it was.
        """
        self._copies += 1
        name = f"{self.session_id}-{self._copies}{DATABASE_SUFFIX}"
        try:
            if not self._folder.is_reached:
                raise Interfered("the directory of its session was removed, moved or replaced")
            self._insert_all(meanwhile)
            self._database.add_views()
            copies = self._folder.beside(CHECKPOINTS_FOLDER)
            try:
                self._database.copy_to(copies, name, meanwhile=meanwhile)
                return os.path.join(copies.path, name)
            finally:
                copies.close()
        except (OSError, sqlite3.Error) as error:
            place = os.path.join(os.path.dirname(self._folder.path), CHECKPOINTS_FOLDER)
            raise StoreError(
                f"can't write the checkpoint {name}: {_reason(error)}",
                way_to_room(f"{place} must be a directory of yours, with free space"),
            ) from error

    # The end

    def close(self) -> None:
        """Leave the complete database as the only file, or else the journal.

        Raise StoreError if neither has the whole session, if the log is not where it belongs, or
        if another program left only the journal.
        """
        problem = ""
        try:
            self._insert_all()
            self._database.add_views()
            self._put_in_place(sync=True)
            self._folder.remove(self._journal_name)
            found = self._folder.status(self._database_name)
            if found is None or self._identity(found) != self._in_place:
                self._write_journal_again()
                raise Interfered("another program keeps replacing it")
        except Interfered as interfered:
            problem = f"another program changed the event log {self.path}: {interfered.strerror}"
            if not self._journal.objection(self._folder, self._journal_name):
                problem += "; its journal is complete"
        except (OSError, sqlite3.Error, StoreError):
            if self._journal.objection(self._folder, self._journal_name):
                problem = f"the event log {self.path} could not be written"
        self._database.close()
        self._journal.close()
        is_there = self._folder.is_reached and self._folder.is_found
        place = self._folder.place()
        self._folder.close()
        if self._lost or problem:
            raise StoreError(self._lost or problem)
        if not is_there:
            raise StoreError(f"the event log {self.path} was moved to {place}")

    def discard(self) -> None:
        """Remove the log of a session that ran nothing."""
        for name in self._database_name, self._journal_name:
            self._folder.remove(name)
        self._database.close()
        self._journal.close()
        self._folder.close()

    def _insert_all(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        while self._pending:
            self._insert(INDEX_BATCH)
            meanwhile()

    def _insert(self, limit: int) -> None:
        batch = self._pending[:limit]
        self._database.insert(batch)
        del self._pending[: len(batch)]
        self._pending_bytes -= sum(len(row[4]) for row in batch)

    def _write_journal_again(self) -> None:
        journal = Journal.write_again(
            self._folder, self._journal_name, self._database.lines, durable=self._durable
        )
        self._journal.close()
        self._journal = journal

    def _put_in_place(self, *, sync: bool = False) -> None:
        """Copy the database as it is to its place."""
        found = self._database.copy_to(self._folder, self._database_name, sync=sync)
        self._in_place = self._identity(found)
        self._rows_in_place = self.seq

    def _identity(self, status: os.stat_result) -> tuple[int, ...]:
        """Return what stays the same of a file that no process writes to."""
        changed_ns = status.st_ctime_ns if self._compares_times else 0
        return status.st_dev, status.st_ino, status.st_size, changed_ns


class PrivateDatabase:
    """A database in a file without a name, which no other process can open.

    SQLite opens files by their names, so it has one for a moment. Meanwhile, another process can
    give the name to another file, or give the file another name. Each use raises Interfered if a
    process that has opened the file wrote to it.
    """

    def __init__(self, folder: HeldFolder, name: str) -> None:
        """Raise OSError or sqlite3.Error if it can't be made."""
        attempts = ATTEMPTS
        while True:
            attempts -= 1
            unfinished = new_name(name)
            self._fd = folder.create(unfinished)
            try:
                path = os.path.join(folder.path, unfinished)
                self._connection = open_new_database(path, self._fd)
                folder.remove(unfinished)
                self._state = _state(self._fd)
                if not os.fstat(self._fd).st_nlink:
                    return
                self._connection.close()
                raise Interfered("another program keeps renaming its database")
            except BaseException as failure:
                folder.remove(unfinished)
                os.close(self._fd)
                if not attempts or not isinstance(failure, OSError | sqlite3.Error):
                    raise

    @property
    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def insert(self, rows: Sequence[tuple[object, ...]]) -> None:
        self._check()
        try:
            with self._connection:  # commits, or rolls back
                self._connection.execute("BEGIN IMMEDIATE")
                self._connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", rows)
        finally:
            self._state = _state(self._fd)

    def add_views(self) -> None:
        """Add them at the end: SQLite would parse them when it opens the database."""
        self._check()
        try:
            self._connection.executescript(views_script())
        finally:
            self._state = _state(self._fd)

    def lines(self) -> Iterator[bytes]:
        """Yield the lines of a journal with all rows, many at once."""
        self._check()
        cursor = self._connection.execute("SELECT * FROM events ORDER BY seq")
        while rows := cursor.fetchmany(_ROWS_AT_ONCE):
            yield b"".join(journal_line(canonical_row(*row[:5]), row[5]) for row in rows)

    def copy_to(
        self,
        folder: HeldFolder,
        name: str,
        *,
        sync: bool = False,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> os.stat_result:
        """Replace what has this name by a copy, and return its status."""
        self._check()

        def write(target_fd: int) -> None:
            offset = 0
            while copied := os.sendfile(target_fd, self._fd, offset, _COPIED_AT_ONCE):
                offset += copied
                meanwhile()
            if sync:
                os.fsync(target_fd)

        fd = folder.put_new(name, write)
        try:
            return os.fstat(fd)
        finally:
            os.close(fd)

    def close(self) -> None:
        self._connection.close()
        os.close(self._fd)

    def _check(self) -> None:
        if _state(self._fd) != self._state:
            raise Interfered("another program wrote to the database before it was in place")


def open_new_database(path: str, fd: int) -> sqlite3.Connection:
    """Make the database in the empty file that `fd` holds.

    Raise OSError or sqlite3.Error, also if the path leads to another file by now. No other program
    sees the file. So it has no shared memory (a program that empties a -shm file kills its users by
    SIGBUS), no file beside it, no lock, and nothing to sync: a killed writer leaves the journal.
    """
    lowest = os.dup(fd)
    os.close(lowest)
    database = sqlite3.connect(path, timeout=0, isolation_level=None)
    try:
        if not _has_opened(fd, lowest):
            raise sqlite3.OperationalError("another program replaced it")
        database.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        database.execute("PRAGMA journal_mode = MEMORY")
        database.execute("PRAGMA synchronous = OFF")
        database.execute("PRAGMA mmap_size = 0")
        database.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        database.executescript(TABLE_SCRIPT)
        objects = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if objects != (TABLE_SCRIPT_OBJECTS,):
            raise sqlite3.OperationalError("another program wrote to it")
    except BaseException:
        database.close()
        raise
    return database


def _has_opened(fd: int, lowest: int) -> bool:
    """Return whether SQLite, which opens a file by its path, opened the one that `fd` holds.

    Its descriptor is one of the lowest that were free.
    """
    held = os.fstat(fd)
    for number in range(lowest, lowest + _DESCRIPTORS_CHECKED):
        try:
            if os.path.samestat(os.fstat(number), held):
                return True
        except OSError:
            continue
    return False


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


def _state(fd: int) -> tuple[int, ...]:
    """Return what another process cannot change unnoticed."""
    status = os.fstat(fd)
    return status.st_nlink, status.st_size, status.st_mtime_ns, status.st_ctime_ns
