"""The one writer of a session: record first, index when there is time.

Every exec and signal of the tree waits for `append`, which costs one JSON encoding, one hash
and one write to the journal; the database gets the rows later, in batches. Considered and not
taken: a committed INSERT per event (20 µs instead of 5), a thread (a queue between the decision and
the record is what loses events).
"""

from __future__ import annotations

import os
import sqlite3
import time

from sigwrap.errors import StoreError
from sigwrap.events import Payload
from sigwrap.store import location
from sigwrap.store.chain import chain_key, genesis, next_hash
from sigwrap.store.codec import canonical_row, encode_payload, journal_line
from sigwrap.store.journal import Journal
from sigwrap.store.schema import create_database

FOLD_BATCH = 256
# Rows are kept in memory until they are in the database. Where so many are, append fails.
PENDING_LIMIT = 32_768
PENDING_LIMIT_BYTES = 64 << 20
FOLD_BATCH_BYTES = 1 << 20
JOURNAL_LIMIT_BYTES = 1 << 20
FOLD_RETRY_NS = 1_000_000_000
CHECKPOINT_ROWS = 2_048


class SessionLog:
    def __init__(
        self, session_id: str, key: bytes, journal: Journal, database: sqlite3.Connection, path: str
    ) -> None:
        self.session_id = session_id
        self.path = path
        self.seq = 0
        self._key = key
        self._head = genesis(session_id, key)
        self._journal = journal
        self._database = database
        self._pending: list[tuple[int, int, str, int, str, str]] = []
        self._pending_bytes = 0
        self._retry_fold_at_ns = 0
        self._rows_since_checkpoint = 0

    @classmethod
    def create(
        cls, store: str, session_id: str, *, key: bytes | None = None, durable: bool = False
    ) -> SessionLog:
        """A StoreError here means that nothing of the session is left in the store."""
        path = location.database_path(store, session_id)
        try:
            os.makedirs(store, mode=0o700, exist_ok=True)
            os.makedirs(location.sessions_folder(store), mode=0o700, exist_ok=True)
            # The journal first: from its lock, a reader knows that a database has a writer.
            journal = Journal.create(location.journal_path(path), durable=durable)
            try:
                database = create_database(path, durable=durable)
            except (OSError, sqlite3.Error):
                journal.close(remove=True)
                raise
        except (OSError, sqlite3.Error) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise StoreError(
                f"can't create the event log {path}: {reason}",
                "choose a folder that can be written, with --store or $SIGWRAP_STORE",
            ) from error
        return cls(session_id, chain_key(key), journal, database, path)

    @property
    def head(self) -> str:
        return self._head.hex()

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
                "does another program keep the database locked?",
            )
        seq = self.seq + 1
        text = encode_payload(type_name, payload)
        canonical = canonical_row(seq, time_ns, type_name, pid, text)
        head = next_hash(self._head, canonical, self._key)
        hash_hex = head.hex()
        self._journal.append(journal_line(canonical, hash_hex))
        self._head = head
        self.seq = seq
        pending.append((seq, time_ns, type_name, pid, text, hash_hex))
        self._pending_bytes += len(text)
        return seq

    def fold(self, limit: int = FOLD_BATCH) -> int:
        """Moves at most `limit` rows into the database; says how many are still pending.

        A database that can't be written loses nothing: the journal keeps the rows, and a later
        call tries again, though not more often than once a second."""
        if self._pending and time.monotonic_ns() >= self._retry_fold_at_ns:
            try:
                self._insert(limit)
            except sqlite3.Error:
                self._retry_fold_at_ns = time.monotonic_ns() + FOLD_RETRY_NS
        return len(self._pending)

    def checkpoint(self) -> None:
        """For idle moments: moves the WAL into the database, which syncs, when it is worth it."""
        if self._rows_since_checkpoint < CHECKPOINT_ROWS:
            return
        self._rows_since_checkpoint = 0
        try:
            self._database.execute("PRAGMA wal_checkpoint(PASSIVE)")
        except sqlite3.Error:
            pass  # The WAL keeps everything; a later checkpoint, or closing, gets it.

    def close(self) -> None:
        """Leaves one file behind, or, when the database can't take the rows, the journal too."""
        try:
            while self._pending:
                self._insert(FOLD_BATCH)
        except sqlite3.Error:
            pass
        try:
            # Without a WAL, the file can be read where nothing can be written.
            self._database.execute("PRAGMA journal_mode = DELETE")
        except sqlite3.Error:
            pass  # A reader is at it, or the disk is full: it is as readable with its WAL.
        self._database.close()
        self._journal.close(remove=not self._pending)

    def _insert(self, limit: int) -> None:
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
        del self._pending[: len(batch)]
        self._pending_bytes -= sum(len(row[4]) for row in batch)
        self._rows_since_checkpoint += len(batch)
        if not self._pending and self._journal.size > JOURNAL_LIMIT_BYTES:
            self._journal.truncate()
