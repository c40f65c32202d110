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
from collections.abc import Callable, Iterable

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
from sigwrap.log.database import PrivateDatabase
from sigwrap.log.folder import (
    CHECKPOINTS_FOLDER,
    DATABASE_SUFFIX,
    JOURNAL_SUFFIX,
    Folder,
    Interfered,
    database_path,
    sessions_folder,
)
from sigwrap.log.journal import lock

INDEX_BATCH = 256
# Rows stay in memory until they are in the database. Above these limits, append fails.
PENDING_LIMIT = 32_768
PENDING_LIMIT_BYTES = 64 << 20
INDEX_BATCH_BYTES = 1 << 20
INDEX_RETRY_NS = 1_000_000_000
# Copying a larger database takes too long while callers wait: it is copied at the end only.
COPIED_MEANWHILE_BYTES = 16 << 20
_NO_ROOM = "free disk space, or choose another directory with --store"
_CLOCK_TOLERANCE_NS = 20_000_000

PendingRow = tuple[int, int, str, int, str, str]


class SessionLog:
    def __init__(
        self, session_id: str, key: bytes, folder: Folder, journal: Journal, *, durable: bool
    ) -> None:
        """Raise OSError or sqlite3.Error if the database can't be made."""
        self.session_id = session_id
        self.seq = 0
        self._empty = hasher(key)
        self.head_bytes = genesis(session_id, key)
        self._database_name = session_id + DATABASE_SUFFIX
        self._journal_name = session_id + JOURNAL_SUFFIX
        self.path = folder.path_of(self._database_name)
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
            place, journal = Folder.make(sessions_folder(store)), None
            try:
                if place.status(database) is not None:
                    raise FileExistsError(0, "File exists")
                # The journal comes first: its lock tells readers that the session has a writer.
                journal = Journal.create(place, journal_name, durable=durable)
                return cls(session_id, chain_key(key), place, journal, durable=durable)
            except BaseException:
                if journal is not None:
                    place.remove(journal_name)
                    journal.close()
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
        return self.append_text(type_name, pid, encode_payload(type_name, payload), time_ns)

    def append_text(self, type_name: str, pid: int, text: str, time_ns: int) -> int:
        """Record the event with this encoded payload, and return its number.

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
        canonical = canonical_row(seq, time_ns, type_name, pid, text)
        head = next_hash(self.head_bytes, canonical, self._empty)
        hash_hex = head.hex()
        self._journal.append(journal_line(canonical, hash_hex))
        self.head_bytes = head
        self.seq = seq
        pending.append((seq, time_ns, type_name, pid, text, hash_hex))
        self._pending_bytes += len(text)
        return seq

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
                return copies.path_of(name)
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
            self._folder.remove(self._database_name + "-wal")  # with one, readers refuse the log
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


class Journal:
    def __init__(self, path: str, fd: int, *, durable: bool) -> None:
        self.path = path
        self.size = 0
        self._written_ns = time.time_ns()
        self._compares_times = sets_times_at_once(fd)
        self.fd = fd
        self._durable = durable
        self.is_torn = False

    @classmethod
    def create(cls, folder: Folder, name: str, *, durable: bool) -> Journal:
        fd = folder.create(name, os.O_APPEND)
        try:
            lock(fd)
        except BaseException:
            os.close(fd)
            folder.remove(name)
            raise
        return cls(folder.path_of(name), fd, durable=durable)

    @classmethod
    def write_again(
        cls, folder: Folder, name: str, pieces: Callable[[], Iterable[bytes]], *, durable: bool
    ) -> Journal:
        """Write a journal in the place of what has its name; raise OSError or StoreError."""
        written: list[Journal] = []

        def write(fd: int) -> None:
            lock(fd)
            journal = cls(folder.path_of(name), fd, durable=False)
            for piece in pieces():
                journal.append(piece)
            if durable:
                os.fdatasync(fd)
            written.append(journal)

        folder.put_new(name, write, os.O_APPEND)
        journal = written[-1]
        journal._written_ns = time.time_ns()
        journal._durable = durable
        return journal

    def append(self, line: bytes) -> None:
        """Record the line; after a StoreError, the file has no part of it."""
        if self.is_torn and (failure := self._cut()):
            raise StoreError(
                f"can't repair the event log {self.path}: {failure}",
                "choose another directory with --store",
            )
        try:
            written = os.write(self.fd, line)
            if self._durable and written == len(line):
                os.fdatasync(self.fd)
        except OSError as error:
            raise self.failed(os.strerror(error.errno or 0)) from error
        if written != len(line):
            raise self.failed()
        self.size += written
        self._written_ns = time.time_ns()

    def failed(self, reason: str = "only part of an event was written") -> StoreError:
        """Take back what a failed write left, and return the error to raise."""
        self.is_torn = True
        self._cut()  # if that fails, the next append tries again
        return StoreError(f"can't write the event log {self.path}: {reason}", way_to_room(_NO_ROOM))

    def objection(self, folder: Folder, name: str) -> str:
        """Return what another program did to the file, or an empty text."""
        held, found = os.fstat(self.fd), folder.status(name)
        if found is None:
            return "the journal was removed"
        is_as_long = held.st_size == self.size or self.is_torn
        # No process can set this time.
        is_later = held.st_ctime_ns > self._written_ns + _CLOCK_TOLERANCE_NS
        if os.path.samestat(found, held) and is_as_long and not (self._compares_times and is_later):
            return ""
        return "the journal was replaced or changed"

    def close(self) -> None:
        os.close(self.fd)

    def _cut(self) -> str:
        """Cut a torn line; return why that failed, or an empty text."""
        try:
            os.ftruncate(self.fd, self.size)
        except OSError as error:
            return error.strerror or "unknown error"
        self._written_ns = time.time_ns()
        self.is_torn = False
        return ""


def _reason(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
