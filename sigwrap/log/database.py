"""A database that its writer alone can open, until a copy of it gets a name."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

from sigwrap.bare import sqlite3
from sigwrap.log.codec import canonical_row, journal_line
from sigwrap.log.folder import ATTEMPTS, HeldFolder, Interfered, new_name
from sigwrap.log.schema import TABLE_SCRIPT, TABLE_SCRIPT_OBJECTS, views_script

_ROWS_AT_ONCE = 256
_COPIED_AT_ONCE = 1 << 24
# SQLite only appends rows here and never reads them again, so a small cache that fits the
# processor's own is best: with the usual 2 MB, appending takes 1.5 times as long.
_CACHE_KIB = 256
# A recorded stream fills many pages; with the usual 4 KiB, it takes twice as long.
_PAGE_BYTES = 16 << 10
_DESCRIPTORS_CHECKED = 8


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
                path = folder.path_of(unfinished)
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


def _state(fd: int) -> tuple[int, ...]:
    """Return what another process cannot change unnoticed."""
    status = os.fstat(fd)
    return status.st_nlink, status.st_size, status.st_mtime_ns, status.st_ctime_ns
