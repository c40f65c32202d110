"""Which files of a store belong to which session, and how to hold them.

Whoever runs as the user can put anything into a store. So a file counts by its whole name, no link
is followed, and what is removed is a file of the user's in a folder of the user's.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sigwrap.errors import SessionError, StoreError
from sigwrap.escape import printable
from sigwrap.store.folder import HeldFolder
from sigwrap.store.journal import lock
from sigwrap.store.location import CHECKPOINTS_FOLDER, SESSIONS_FOLDER, Names
from sigwrap.tuples import NamedTuple

_UNFINISHED = r"\.new-[0-9a-f]{12}"
_OF_A_SESSION = re.compile(
    rf"(?s)(.+)(?:\.db(?:-wal|-shm|-journal|{_UNFINISHED})?|\.journal(?:{_UNFINISHED})?)"
)
_OF_A_CHECKPOINT = re.compile(rf"(?s)(.+)-\d+\.db(?:{_UNFINISHED})?")
_PATTERNS = {SESSIONS_FOLDER: _OF_A_SESSION, CHECKPOINTS_FOLDER: _OF_A_CHECKPOINT}
_NO_JOURNAL = (errno.ELOOP, errno.EISDIR, errno.ENXIO, errno.ENODEV)  # a link, a folder, a device
_STARTS_WITHIN_S = 5.0  # from the file of its journal to its first event


class Belonging(NamedTuple):
    folder: str
    name: str
    session_id: str
    is_ours: bool  # a plain file of this user's, that is
    size: int
    changed_s: float


def belongings(store: str) -> list[Belonging]:
    """Of all sessions; what can't be read holds none."""
    return [each for folder in _PATTERNS for each in _in_folder(store, folder)]


def _in_folder(store: str, folder: str) -> Iterator[Belonging]:
    try:
        entries = os.scandir(os.path.join(store, folder))
    except OSError:
        return
    with entries:
        for entry in entries:
            named = _PATTERNS[folder].fullmatch(entry.name)
            if named is None:
                continue
            try:
                found = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # it was removed meanwhile
            yield Belonging(
                folder,
                entry.name,
                named[1],
                stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid(),
                found.st_size if stat.S_ISREG(found.st_mode) else 0,
                found.st_mtime,
            )


def is_unfinished(name: str) -> bool:
    """A file that its writer was killed over, before it had its name."""
    return re.search(rf"{_UNFINISHED}\Z", name) is not None


@contextmanager
def held(store: str, folder: str) -> Iterator[HeldFolder]:
    """A folder of the store. StoreError where it isn't one of this user's."""
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
def without_writer(sessions: HeldFolder, session_id: str) -> Iterator[int | None]:
    """The session's journal, locked, so that no writer has it; None where it has none.
    SessionError where its writer lives."""
    flags = os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(Names(session_id).journal, flags, dir_fd=sessions.fd)
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
            raise runs(session_id) from error
        if _may_be_starting(os.fstat(fd)):
            raise runs(session_id)
        yield fd
    finally:
        os.close(fd)


def _may_be_starting(journal: os.stat_result) -> bool:
    """A writer makes the file before it locks it."""
    return not journal.st_size and time.time() - journal.st_ctime < _STARTS_WITHIN_S


def runs(session_id: str) -> SessionError:
    shown = printable(session_id)
    return SessionError(f"session {shown} is running", f"to end it: sigwrap stop {shown}")
