"""Merge or remove the files of sessions that have ended.

Any process of the user can put files into a store. So a file counts by its whole name, no link is
followed, and only the user's own files in the user's own directories are removed.

A killed writer leaves a journal with every event, and a database that lags behind. To merge them, a
new database with all events is written under a name of its own and synced. It replaces the old one
by a rename, and only then the journal is removed. A kill in between loses nothing, and recovery can
start again.
"""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

from sigwrap.errors import SessionError, StoreError
from sigwrap.kernel.limits import way_to_room
from sigwrap.log.catalog import SessionFile, StoredFile, is_unfinished
from sigwrap.log.codec import Row
from sigwrap.log.folder import DATABASE_SUFFIX, JOURNAL_SUFFIX, SESSIONS_FOLDER, HeldFolder
from sigwrap.log.journal import JournalFile, lock
from sigwrap.log.reader import first_stray_row, is_end, last_row, opened, refuse_foreign_rows
from sigwrap.log.schema import views_script
from sigwrap.log.writer import INDEX_BATCH, copy_file, insert_rows, make_private_database
from sigwrap.text import printable

_NO_JOURNAL = (errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.ENODEV)  # a link, a folder, a device
_STARTS_WITHIN_S = 5.0  # from the file of its journal to its first event
_NS_PER_S = 1_000_000_000
_VERIFY = "one of the two was changed: run sigwrap verify"


# Recovery


def recover(store: str, session_id: str, files: Iterable[StoredFile]) -> int:
    """Merge the files of this session, and return how many events its database has.

    Raise SessionError if it is running. Raise StoreError if its journal is damaged, and change
    nothing.
    """
    database, journal_name = session_id + DATABASE_SUFFIX, session_id + JOURNAL_SUFFIX
    with _held(store, SESSIONS_FOLDER) as folder, _without_writer(folder, session_id) as journal_fd:
        if journal_fd is None:
            if folder.status(journal_name) is not None:
                raise StoreError(
                    f"the journal of {_path(folder, database)} is a link or a file of another user",
                    "check it and remove it by hand",
                )
            events = _event_count(_path(folder, database))
        else:
            path = _path(folder, journal_name)
            with closing(JournalFile(path, open(os.dup(journal_fd), "rb"))) as journal:
                events = _merge(folder, database, journal)
            os.fsync(folder.fd)
            folder.remove(journal_name)
        for each in files:
            if each.is_ours and each.folder == SESSIONS_FOLDER and is_unfinished(each.name):
                folder.remove(each.name)
    return events


def _event_count(path: str) -> int:
    with opened(path) as database:
        last = database.last()
    return 0 if last is None else last.seq


def _merge(folder: HeldFolder, name: str, journal: JournalFile) -> int:
    path = _path(folder, name)
    if journal.is_empty:
        return _event_count(path)
    before = last_row(path)  # None: the journal has everything
    if before is not None and is_end(before):
        if first_stray_row(journal, path):
            raise StoreError(
                f"can't merge {path}: it is complete, and its journal has other rows", _VERIFY
            )
        return before.seq
    refuse_foreign_rows(path)
    try:
        fd, connection = make_private_database(folder, name)
        try:
            with closing(connection):
                events = _insert(connection, journal, before, path)
                connection.executescript(views_script())

            def write(target_fd: int) -> None:
                copy_file(fd, target_fd)
                os.fsync(target_fd)

            os.close(folder.put_new(name, write))
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
            raise StoreError(f"line {count} of the journal of {path} is out of order", _VERIFY)
        if len(batch) == INDEX_BATCH:
            insert_rows(connection, batch)
            batch.clear()
    insert_rows(connection, batch)
    if not is_continued:
        raise StoreError(f"can't merge {path}: it has rows that its journal lacks", _VERIFY)
    return count


# Removal


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedFiles:
    """`left`: paths that have the name of a session's file but are no file of the user's."""

    size: int
    left: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surplus:
    """Which sessions are surplus; None sets no limit."""

    older_than_s: float | None = None
    keep: int | None = None
    max_size: int | None = None


def surplus(sessions: list[SessionFile], wanted: Surplus, now_ns: int) -> list[SessionFile]:
    """Return the surplus sessions that have ended, oldest first, but never the `keep` latest."""
    latest_first = sorted(sessions, key=_ended_ns, reverse=True)
    kept = {file.id for file in latest_first[: wanted.keep or 0]}
    too_large = _beyond(latest_first, wanted.max_size)
    found = []
    for file in reversed(latest_first):
        if file.running or file.id in kept:
            continue
        old = wanted.older_than_s is not None and (
            now_ns - _ended_ns(file) > wanted.older_than_s * _NS_PER_S
        )
        only_keep = wanted.older_than_s is None and wanted.max_size is None
        if old or only_keep or file.id in too_large:
            found.append(file)
    return found


def _beyond(latest_first: list[SessionFile], max_size: int | None) -> set[str]:
    """Return the ids of the sessions that no longer fit, counted from the latest."""
    if max_size is None:
        return set()
    size, found = sum(file.size for file in latest_first if file.running), set()
    for file in latest_first:
        if not file.running:
            size += file.size
            if size > max_size:
                found.add(file.id)
    return found


def _ended_ns(file: SessionFile) -> int:
    return file.last_event_ns if file.events else file.changed_ns


def remove(store: str, session_id: str, files: Iterable[StoredFile]) -> RemovedFiles:
    """Remove the files of this session; raise SessionError if it is running.

    The journal goes last, because until then a session that did not end has all its events.
    """
    with _held(store, SESSIONS_FOLDER) as sessions, _without_writer(sessions, session_id):
        journal = session_id + JOURNAL_SUFFIX
        size, left = 0, []
        for each in sorted(files, key=lambda each: each.name == journal):
            if not each.is_ours:
                left.append(os.path.join(store, each.folder, each.name))
            elif each.folder == SESSIONS_FOLDER:
                size += _remove(sessions, each)
            else:
                with _held(store, each.folder) as other:
                    size += _remove(other, each)
    return RemovedFiles(size=size, left=tuple(left))


def _remove(folder: HeldFolder, file: StoredFile) -> int:
    try:
        os.unlink(file.name, dir_fd=folder.fd)
    except FileNotFoundError:
        return 0
    except OSError as error:
        path = _path(folder, file.name)
        raise StoreError(f"can't remove {path}: {error.strerror}") from error
    return file.size


# Recovery and removal


def _path(folder: HeldFolder, name: str) -> str:
    return os.path.join(folder.path, name)


@contextmanager
def _held(store: str, folder: str) -> Iterator[HeldFolder]:
    """Hold a directory of the store; raise StoreError if it is not this user's."""
    path = os.path.join(store, folder)
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(path, flags)
    except OSError as error:
        raise StoreError(f"can't open the directory {path}: {error.strerror}") from error
    try:
        if os.fstat(fd).st_uid != os.geteuid():
            raise StoreError(
                f"the directory {path} belongs to another user", "choose another with --store"
            )
        yield HeldFolder(path, fd)
    finally:
        os.close(fd)


@contextmanager
def _without_writer(sessions: HeldFolder, session_id: str) -> Iterator[int | None]:
    """Lock the session's journal against writers; yield None if it has none.

    Raise SessionError if its writer is running.
    """
    flags = os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(session_id + JOURNAL_SUFFIX, flags, dir_fd=sessions.fd)
    except FileNotFoundError:
        yield None
        return
    except OSError as error:
        if error.errno in _NO_JOURNAL:
            yield None
            return
        raise StoreError(
            f"can't open the journal of session {session_id}: {error.strerror}",
            "it shows whether the session is running",
        ) from error
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            yield None
            return
        try:
            lock(fd)
        except OSError as error:
            raise is_running(session_id) from error
        found = os.fstat(fd)
        if not found.st_size and time.time() - found.st_ctime < _STARTS_WITHIN_S:
            raise is_running(session_id)  # a writer may be about to lock the file it has just made
        yield fd
    finally:
        os.close(fd)


def is_running(session_id: str) -> SessionError:
    shown = printable(session_id)
    return SessionError(f"session {shown} is running", f"to end it: sigwrap stop {shown}")
