"""Merge the log of a session whose writer was killed into one file.

Such a writer leaves a journal with every event, and a database that lags behind. A new database
with all events is written under a name of its own and synced. It replaces the old one by a rename,
and only then the journal is removed. A kill in between loses nothing, and recovery can start again.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing

from sigwrap.errors import StoreError
from sigwrap.linux.limits import way_to_room
from sigwrap.store.belongings import Belonging, held, is_unfinished, without_writer
from sigwrap.store.codec import Row
from sigwrap.store.database import last_row, opened
from sigwrap.store.folder import HeldFolder
from sigwrap.store.journal_reader import JournalFile
from sigwrap.store.location import SESSIONS_FOLDER, Names
from sigwrap.store.reader import first_stray_row, is_end
from sigwrap.store.schema import add_views, copy_file
from sigwrap.store.writer import FOLD_BATCH, make_private_database


def recover(store: str, session_id: str, files: Iterable[Belonging]) -> int:
    """Merge the files of this session, and return how many events its database has.

    Raise SessionError if it is running. Raise StoreError if its journal is damaged, and change
    nothing.
    """
    names = Names(session_id)
    with held(store, SESSIONS_FOLDER) as folder, without_writer(folder, session_id) as journal_fd:
        database = os.path.join(folder.path, names.database)
        if journal_fd is None:
            if folder.status(names.journal) is not None:
                raise StoreError(
                    f"the journal of {database} is a link or a file of another user",
                    "check it and remove it by hand",
                )
            events = _last_seq(_last(database))
        else:
            path = os.path.join(folder.path, names.journal)
            with closing(JournalFile(path, open(os.dup(journal_fd), "rb"))) as journal:
                before = last_row(database)
                if journal.is_empty:
                    events = _last_seq(_last(database))
                elif before is not None and is_end(before):
                    if first_stray_row(journal, database):
                        raise StoreError(
                            f"can't merge {database}: it is complete, and its journal has other "
                            "rows",
                            _LOOK,
                        )
                    events = before.seq
                else:
                    events = _write_whole(folder, names, journal)
            os.fsync(folder.fd)
            folder.remove(names.journal)
        for each in files:
            if each.is_ours and each.folder == SESSIONS_FOLDER and is_unfinished(each.name):
                folder.remove(each.name)
    return events


def _write_whole(folder: HeldFolder, names: Names, journal: JournalFile) -> int:
    path = os.path.join(folder.path, names.database)
    wal = path + "-wal"
    if os.path.lexists(wal) and os.lstat(wal).st_size:
        raise StoreError(
            f"another program wrote rows to {wal}",
            f"to merge them: sqlite3 {path} 'PRAGMA journal_mode = DELETE'",
        )
    before = last_row(path)  # None: the journal has everything
    try:
        fd, connection = make_private_database(folder, names.database)
        try:
            with closing(connection):
                events = _insert(connection, journal, before, path)
                add_views(connection)

            def write(target_fd: int) -> None:
                copy_file(fd, target_fd)
                os.fsync(target_fd)

            os.close(folder.put_new(names.database, write))
        finally:
            os.close(fd)
    except (OSError, sqlite3.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise StoreError(
            f"can't rewrite {path}: {reason}", way_to_room("its journal is complete")
        ) from error
    return events


def _insert(
    connection: sqlite3.Connection, journal: JournalFile, before: Row | None, path: str
) -> int:
    batch: list[Row] = []
    count, is_continued = 0, before is None
    for row in journal.rows():
        is_continued = is_continued or row == before
        batch.append(row)
        count += 1
        if row.seq != count:
            raise StoreError(f"line {count} of the journal of {path} is out of order", _LOOK)
        if len(batch) == FOLD_BATCH:
            _insert_batch(connection, batch)
    _insert_batch(connection, batch)
    if not is_continued:
        raise StoreError(f"can't merge {path}: it has rows that its journal lacks", _LOOK)
    return count


_LOOK = "one of the two was changed: run sigwrap verify"


def _insert_batch(connection: sqlite3.Connection, batch: list[Row]) -> None:
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)", batch)
    connection.execute("COMMIT")
    batch.clear()


def _last(database: str) -> Row | None:
    with opened(database) as found:
        return found.last()


def _last_seq(row: Row | None) -> int:
    return 0 if row is None else row.seq
