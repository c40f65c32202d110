"""The session's database: one append-only table, readable by any SQLite client.

No index but the primary key: appending costs the same for the millionth event as for the first.
"""

from __future__ import annotations

import os
import sqlite3

APPLICATION_ID = 0x53675772  # "SgWr"; `file` and other tools can tell the format by it
SCHEMA_VERSION = 1

# A busy loop commits at least every 256 events, so the WAL only grows past this when no idle
# moment allowed a checkpoint for about 130 000 events (4 KiB pages).
_AUTOCHECKPOINT_PAGES = 16_384

_TABLES = """
CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    time_ns INTEGER NOT NULL,
    type TEXT NOT NULL,
    pid INTEGER NOT NULL,
    payload TEXT NOT NULL,
    hash TEXT NOT NULL
);
CREATE TRIGGER events_are_not_changed BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER events_are_not_deleted BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
"""


def create_database(path: str, *, durable: bool) -> sqlite3.Connection:
    """OSError or sqlite3.Error where it can't; then it leaves no file."""
    # SQLite gives the -wal and -shm files the mode of the database.
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    # timeout=0: another client's lock must not stall the supervisor; a fold is tried again.
    database = sqlite3.connect(path, timeout=0, isolation_level=None)
    try:
        # There are no rows to lose yet, so no need to sync.
        database.execute("PRAGMA synchronous = OFF")
        database.execute("PRAGMA journal_mode = WAL")
        database.executescript(
            f"BEGIN; PRAGMA application_id = {APPLICATION_ID};"
            f"PRAGMA user_version = {SCHEMA_VERSION}; {_TABLES} COMMIT;"
        )
        database.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        database.execute(f"PRAGMA wal_autocheckpoint = {_AUTOCHECKPOINT_PAGES}")
    except sqlite3.Error:
        database.close()
        os.unlink(path)
        raise
    return database
