"""The session's database: one append-only table and, once it is sealed, views for SQLite clients.

No index but the primary key: appending costs the same for the millionth event as for the first.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from sigwrap.bare import sqlite3
from sigwrap.store.views import VIEWS, log_view

APPLICATION_ID = 0x53675772  # "SgWr"; `file` and other tools can tell the format by it
SCHEMA_VERSION = 1

EVENTS_TABLE = """\
CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    time_ns INTEGER NOT NULL,
    type TEXT NOT NULL,
    pid INTEGER NOT NULL,
    payload TEXT NOT NULL,
    hash TEXT NOT NULL
)"""
_TRIGGERS = """
CREATE TRIGGER events_are_not_changed BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER events_are_not_deleted BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
"""

_FILE_LOG = log_view(
    "(SELECT (SELECT json_extract(payload, '$.session_id') FROM events WHERE seq = 1) AS session, "
    "* FROM events)"
)
_FILE_LOG_ENDS = (
    "SELECT first.session, CASE last.type WHEN 'session_ended' THEN 'ended' ELSE 'not ended' END "
    "AS state, first.payload, last.fields AS last, first.time_ns AS first_ns, "
    "last.time_ns AS last_ns, last.seq AS events, last.hash AS head "
    "FROM (SELECT * FROM log ORDER BY seq LIMIT 1) AS first, "
    "(SELECT * FROM log ORDER BY seq DESC LIMIT 1) AS last"
)
# Like shell_words(), but characters that a terminal would obey stay as they are.
_SAFE = "[^A-Za-z0-9_@%+=:,./~^-]"
_FILE_SHELL_WORDS = (
    f"(SELECT group_concat(CASE WHEN value = '' OR value GLOB '*{_SAFE}*' THEN "
    r"'''' || replace(value, '''', '''\''''') || '''' ELSE value END, ' ') FROM json_each(fields,"
)

_MADE = 3  # the table, and its triggers
_NUMBERS = 8
# Rows are only added at the end and never read again. A small cache stays in the processor's own;
# SQLite's usual 2 MB take 1.5 times as long.
_CACHE_KIB = 256
# A recorded stream fills many pages; with SQLite's usual 4 KiB it takes twice as long.
_PAGE_BYTES = 16 << 10


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
        if not _has_taken(fd, lowest):
            raise sqlite3.OperationalError("another program replaced it")
        database.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        database.execute("PRAGMA journal_mode = MEMORY")
        database.execute("PRAGMA synchronous = OFF")
        database.execute("PRAGMA mmap_size = 0")
        database.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        database.executescript(
            f"BEGIN; PRAGMA application_id = {APPLICATION_ID};"
            f"PRAGMA user_version = {SCHEMA_VERSION}; {EVENTS_TABLE}; {_TRIGGERS} COMMIT;"
        )
        if database.execute("SELECT count(*) FROM sqlite_master").fetchone() != (_MADE,):
            raise sqlite3.OperationalError("another program wrote to it")
    except BaseException:
        database.close()
        raise
    return database


def file_views() -> dict[str, str]:
    """Return the SELECT of each view in a log's own database, where `events` is the table."""
    views = {"log": _FILE_LOG, "log_ends": _FILE_LOG_ENDS}
    for view in VIEWS.values():
        if view.name != "events":
            views[view.name] = view.select.replace(
                "shell_words(json_extract(payload,", _FILE_SHELL_WORDS
            )
    return views


def add_views(database: sqlite3.Connection) -> None:
    """Add the views for other SQLite clients: at the end, because parsing them takes 1.5 ms."""
    views = file_views().items()
    made = "".join(f"CREATE VIEW IF NOT EXISTS {name} AS {select};" for name, select in views)
    database.executescript(f"BEGIN IMMEDIATE; {made} COMMIT;")


def _has_taken(fd: int, lowest: int) -> bool:
    """Return whether SQLite, which opens a file by its path, opened the one that `fd` holds.

    Its descriptor is one of the lowest that were free.
    """
    held = os.fstat(fd)
    for number in range(lowest, lowest + _NUMBERS):
        try:
            if os.path.samestat(os.fstat(number), held):
                return True
        except OSError:
            continue
    return False


def copy_file(source_fd: int, target_fd: int, meanwhile: Callable[[], None] = lambda: None) -> None:
    offset = 0
    while copied := os.sendfile(target_fd, source_fd, offset, 1 << 24):
        offset += copied
        meanwhile()
