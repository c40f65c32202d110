"""The one writer of a session: record first, index when there is time.

Every exec and signal of the tree waits for `append`, which costs one JSON encoding, one hash
and one write to the journal; the database gets the rows later, in batches. Considered and not
taken: a committed INSERT per event (20 µs instead of 5), a thread (a queue between the decision and
the record is what loses events).

The journal has all of a session until it ends. The database that the rows go to meanwhile is a file
without a name, so that nothing in the session can reach it: a copy of it is put in its place at the
end, and before that whenever the log has doubled, for readers that know only SQLite. So what was
done to the session's files is mended from what only this process holds.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence

from sigwrap.bare import sqlite3
from sigwrap.errors import StoreError
from sigwrap.events import Payload
from sigwrap.linux.limits import way_to_room
from sigwrap.linux.mounts import sets_times_at_once
from sigwrap.store import location
from sigwrap.store.chain import chain_key, genesis, hasher, next_hash
from sigwrap.store.codec import canonical_row, encode_payload, journal_line
from sigwrap.store.folder import ATTEMPTS, Folder, HeldFolder, Interfered, new_name
from sigwrap.store.journal import Journal
from sigwrap.store.schema import add_views, copy_file, open_new_database

FOLD_BATCH = 256
# Rows are kept in memory until they are in the database. Where so many are, append fails.
PENDING_LIMIT = 32_768
PENDING_LIMIT_BYTES = 64 << 20
FOLD_BATCH_BYTES = 1 << 20
FOLD_RETRY_NS = 1_000_000_000
# A larger one takes too long to be copied while others wait: it is put in place at the end.
COPIED_MEANWHILE_BYTES = 16 << 20
_ROWS_AT_ONCE = 256


PendingRow = tuple[int, int, str, int, str, str]


class SessionLog:
    def __init__(
        self,
        session_id: str,
        key: bytes,
        folder: Folder,
        journal: Journal,
        *,
        durable: bool,
    ) -> None:
        """OSError or sqlite3.Error where there can't be a database."""
        self.session_id = session_id
        self.seq = 0
        self._key = key
        self._empty = hasher(key)
        self._head = genesis(session_id, key)
        self._folder = folder
        self._journal = journal
        self._durable = durable
        self._names = location.Names(session_id)
        self._has_times = sets_times_at_once(folder.fd)
        self._pending: list[PendingRow] = []
        self._pending_bytes = 0
        self._retry_fold_at_ns = 0
        self._rows_in_place = 0
        self._copies = 0
        self._in_place: tuple[int, ...] = ()
        self._lost = ""
        self._fd, self._database = make_private_database(folder, self._names.database)
        self._private = _state(self._fd)
        try:
            self._put_in_place()
        except BaseException:
            self._let_go_of_database()
            raise

    @classmethod
    def create(
        cls, store: str, session_id: str, *, key: bytes | None = None, durable: bool = False
    ) -> SessionLog:
        """A StoreError here means that nothing of the session is left in the store."""
        path = location.database_path(store, session_id)
        names = location.Names(session_id)
        try:
            folder = Folder.make(location.sessions_folder(store))
            try:
                if folder.status(names.database) is not None:
                    raise FileExistsError(0, "File exists")
                # First of all: from its lock, a reader knows that a session has a writer.
                journal = Journal.create(folder, names.journal, durable=durable)
                try:
                    return cls(session_id, chain_key(key), folder, journal, durable=durable)
                except BaseException:
                    folder.remove(names.journal)
                    journal.close()
                    raise
            except BaseException:
                folder.close()
                raise
        except (OSError, sqlite3.Error) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise StoreError(
                f"can't create the event log {path}: {reason}",
                way_to_room("choose a writable directory with --store or $SIGWRAP_STORE"),
            ) from error

    @property
    def path(self) -> str:
        return os.path.join(self._folder.path, self._names.database)

    @property
    def head(self) -> str:
        return self._head.hex()

    @property
    def size(self) -> int:
        """In bytes, of all that was recorded."""
        return self._journal.size

    @property
    def pending(self) -> int:
        return len(self._pending)

    @property
    def wants_fold(self) -> bool:
        """Fold now, even if requests are pending."""
        return len(self._pending) >= FOLD_BATCH or self._pending_bytes >= FOLD_BATCH_BYTES

    def append(self, type_name: str, pid: int, payload: Payload, time_ns: int) -> int:
        """When append returns, the event is recorded; on StoreError it is not, and the chain is as
        before."""
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
        head = next_hash(self._head, canonical, self._empty)
        hash_hex = head.hex()
        self._journal.append(journal_line(canonical, hash_hex))
        self._head = head
        self.seq = seq
        pending.append((seq, time_ns, type_name, pid, text, hash_hex))
        self._pending_bytes += len(text)
        return seq

    # Rows that the extension writes (linux/execs/_repeated.c)

    @property
    def takes_rows(self) -> bool:
        """Whether somebody else may write the next ones, each with one write(2)."""
        is_crowded = len(self._pending) >= FOLD_BATCH or self._pending_bytes >= FOLD_BATCH_BYTES
        return not (self._durable or self._lost or is_crowded or self._journal.is_torn)

    @property
    def key(self) -> bytes:
        return self._key

    @property
    def head_bytes(self) -> bytes:
        return self._head

    @property
    def journal_fd(self) -> int:
        return self._journal.fd

    def rows_written(
        self, rows: Sequence[PendingRow], head: bytes, size: int, written_ns: int
    ) -> None:
        """In the journal they are. `size`: in bytes; `written_ns`: when the last one was."""
        if rows:
            self.seq, self._head = rows[-1][0], head
            self._pending += rows
            self._pending_bytes += sum(len(row[4]) for row in rows)
            self._journal.was_appended(size, written_ns)

    def row_failed(self) -> StoreError:
        """A row that somebody else was to write may be there in part."""
        return self._journal.failed()

    def fold(self, limit: int = FOLD_BATCH) -> int:
        """Moves at most `limit` rows into the database; says how many are still pending.

        A database that can't be written loses nothing: the journal keeps the rows, and a later
        call tries again, though not more often than once a second."""
        if self._pending and time.monotonic_ns() >= self._retry_fold_at_ns:
            try:
                self._insert(limit)
            except (OSError, sqlite3.Error):
                self._retry_fold_at_ns = time.monotonic_ns() + FOLD_RETRY_NS
        return len(self._pending)

    def checkpoint(self) -> None:
        """For idle moments: where it is worth it, the database in its place gets what there is."""
        if self._pending or self.seq < 2 * self._rows_in_place:
            return
        if os.fstat(self._fd).st_size > COPIED_MEANWHILE_BYTES or self.objection():
            return
        self._rows_in_place = self.seq  # also where it fails: not again before it has doubled
        try:
            self._put_in_place()
        except OSError:
            pass  # the journal has everything

    def objection(self) -> str:
        """What somebody has done to the session's files; empty where nobody has."""
        if not self._folder.is_reached:
            return "its directory was removed, moved, replaced or closed"
        objection = self._journal.objection(self._folder, self._names.journal)
        if objection:
            return objection
        found = self._folder.status(self._names.database)
        if found is None:
            return "the database was removed"
        if self._identity(found) != self._in_place:
            return "the database was replaced or changed"
        return "it could not be written for a while" if self._lost else ""

    def restore(self) -> None:
        """Writes anew, in their place, what somebody has done something to. StoreError where that
        can't be, and then every append fails until it can."""
        try:
            self._folder.make_again()
            while self._pending:
                self._insert(FOLD_BATCH)
            self._write_journal_anew()
            self._put_in_place()
        except (OSError, sqlite3.Error, StoreError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            self._lost = f"can't rewrite the event log {self.path}: {reason}"
            raise StoreError(self._lost) from error
        self._lost = ""

    def copy(self, meanwhile: Callable[[], None] = lambda: None) -> str:
        """Of the log as it is now: the path of a file that readers take for a log of its own.
        `meanwhile` is called again and again; a large log takes a while. StoreError where there
        can't be one: the log itself goes on."""
        self._copies += 1
        name = self._names.checkpoint(self._copies)

        def write(fd: int) -> None:
            copy_file(self._fd, fd, meanwhile)

        try:
            if not self._folder.is_reached:
                raise Interfered("the directory of its session was removed, moved or replaced")
            while self._pending:
                self._insert(FOLD_BATCH)
                meanwhile()
            self._add_views()
            folder = self._folder.beside(location.CHECKPOINTS_FOLDER)
            try:
                os.close(folder.put_new(name, write))
                return os.path.join(folder.path, name)
            finally:
                folder.close()
        except (OSError, sqlite3.Error) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            place = os.path.join(os.path.dirname(self._folder.path), location.CHECKPOINTS_FOLDER)
            raise StoreError(
                f"can't write the checkpoint {name}: {reason}",
                way_to_room(f"{place} must be a directory of yours, with free space"),
            ) from error

    def close(self) -> None:
        """Leaves one file behind, or, when that can't be written, the journal; StoreError where
        neither has the whole session, it isn't where it belongs, or somebody saw to it that the
        journal is all there is."""
        problem = ""
        try:
            while self._pending:
                self._insert(FOLD_BATCH)
            self._add_views()
            self._put_in_place(sync=True)
            self._folder.remove(self._names.journal)
            if not self._is_in_place:
                self._write_journal_anew()
                raise Interfered("another program keeps replacing it")
        except Interfered as interfered:
            problem = f"another program changed the event log {self.path}: {interfered.strerror}"
            if not self._journal.objection(self._folder, self._names.journal):
                problem += "; its journal is complete"
        except (OSError, sqlite3.Error, StoreError):
            if self._journal.objection(self._folder, self._names.journal):
                problem = f"the event log {self.path} could not be written"
        self._let_go_of_database()
        self._journal.close()
        is_there = self._folder.is_reached and self._folder.is_found
        place = self._folder.place()
        self._folder.close()
        if self._lost or problem:
            raise StoreError(self._lost or problem)
        if not is_there:
            raise StoreError(f"the event log {self.path} was moved to {place}")

    def discard(self) -> None:
        """Leaves nothing behind, of a session in which nothing was run."""
        for name in self._names.database, self._names.journal:
            self._folder.remove(name)
        self._let_go_of_database()
        self._journal.close()
        self._folder.close()

    def _insert(self, limit: int) -> None:
        self._check_private_database()
        batch = self._pending[:limit]
        database = self._database
        database.execute("BEGIN IMMEDIATE")
        try:
            database.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", batch)
            database.execute("COMMIT")
        except sqlite3.Error:
            if database.in_transaction:
                database.execute("ROLLBACK")
            raise
        finally:
            self._private = _state(self._fd)
        del self._pending[: len(batch)]
        self._pending_bytes -= sum(len(row[4]) for row in batch)

    def _add_views(self) -> None:
        self._check_private_database()
        try:
            add_views(self._database)
        finally:
            self._private = _state(self._fd)

    def _lines(self) -> Iterator[bytes]:
        cursor = self._database.execute("SELECT * FROM events ORDER BY seq")
        while rows := cursor.fetchmany(_ROWS_AT_ONCE):
            yield b"".join(journal_line(canonical_row(*row[:5]), row[5]) for row in rows)

    def _check_private_database(self) -> None:
        """Somebody may have opened it while it had a name."""
        if _state(self._fd) != self._private:
            raise Interfered("another program wrote to the database before it was in place")

    def _write_journal_anew(self) -> None:
        self._check_private_database()
        journal = Journal.write_anew(
            self._folder, self._names.journal, self._lines, durable=self._durable
        )
        self._journal.close()
        self._journal = journal

    def _put_in_place(self, *, sync: bool = False) -> None:
        """A copy of the database as it is."""
        self._check_private_database()

        def write(fd: int) -> None:
            copy_file(self._fd, fd)
            if sync:
                os.fsync(fd)

        fd = self._folder.put_new(self._names.database, write)
        self._in_place = self._identity(os.fstat(fd))
        self._rows_in_place = self.seq
        os.close(fd)

    @property
    def _is_in_place(self) -> bool:
        found = self._folder.status(self._names.database)
        return found is not None and self._identity(found) == self._in_place

    def _identity(self, status: os.stat_result) -> tuple[int, ...]:
        """Return what stays the same of a file that no process writes to."""
        changed_ns = status.st_ctime_ns if self._has_times else 0
        return status.st_dev, status.st_ino, status.st_size, changed_ns

    def _let_go_of_database(self) -> None:
        self._database.close()
        os.close(self._fd)


def make_private_database(folder: HeldFolder, name: str) -> tuple[int, sqlite3.Connection]:
    """Its file has a name only as long as SQLite needs one. Who is quick can give that to another
    file meanwhile, or another name to this one."""
    attempts = ATTEMPTS
    while True:
        attempts -= 1
        unfinished = new_name(name)
        fd = folder.create(unfinished)
        try:
            database = open_new_database(os.path.join(folder.path, unfinished), fd)
            folder.remove(unfinished)
            if os.fstat(fd).st_nlink == 0:
                return fd, database
            database.close()
            raise Interfered("another program keeps renaming its database")
        except BaseException as failure:
            folder.remove(unfinished)
            os.close(fd)
            if not attempts or not isinstance(failure, OSError | sqlite3.Error):
                raise


def _state(fd: int) -> tuple[int, ...]:
    """What no other can change unseen."""
    status = os.fstat(fd)
    return status.st_nlink, status.st_size, status.st_mtime_ns, status.st_ctime_ns
