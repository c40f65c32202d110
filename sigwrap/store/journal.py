"""The journal: an append-only text file, one line an event, and all of a session that still runs.

One write(2) puts an event where SIGKILL of sigwrap can't reach it, for a twentieth of the price of
a committed INSERT. An exclusive flock on the file says that the session's writer lives: the kernel
drops the lock with the last descriptor, however the process ends. A forked child shares the lock
until it execs (O_CLOEXEC).
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterable

from sigwrap.errors import StoreError
from sigwrap.linux.limits import way_to_room
from sigwrap.linux.mounts import sets_times_at_once
from sigwrap.store.folder import Folder

_NO_ROOM = "free disk space, or choose another directory with --store"
_LOCK_ATTEMPTS = 20
_LOCK_PAUSE_S = 0.005
_ABOUT_THE_SAME_TIME_NS = 20_000_000


class Journal:
    def __init__(self, path: str, fd: int, *, durable: bool) -> None:
        self.path = path
        self.size = 0
        self._written_ns = time.time_ns()
        self._has_times = sets_times_at_once(fd)
        self._fd = fd
        self._durable = durable
        self._torn = False

    @classmethod
    def create(cls, folder: Folder, name: str, *, durable: bool) -> Journal:
        """OSError where it can't."""
        fd = folder.create(name, os.O_APPEND)
        try:
            lock(fd)
        except BaseException:
            os.close(fd)
            folder.remove(name)
            raise
        return cls(os.path.join(folder.path, name), fd, durable=durable)

    @classmethod
    def write_anew(
        cls, folder: Folder, name: str, pieces: Callable[[], Iterable[bytes]], *, durable: bool
    ) -> Journal:
        """In the place of whatever has its name; OSError or StoreError where it can't."""
        written: list[Journal] = []

        def write(fd: int) -> None:
            lock(fd)
            journal = cls(os.path.join(folder.path, name), fd, durable=False)
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
        """When append returns, the line is recorded; when it raises, no part of the line is."""
        if self._torn:
            self._cut_torn_line()
        try:
            written = os.write(self._fd, line)
            if self._durable and written == len(line):
                os.fdatasync(self._fd)
        except OSError as error:
            self._take_back()
            raise StoreError(
                f"can't write the event log {self.path}: {error.strerror}", way_to_room(_NO_ROOM)
            ) from error
        if written != len(line):
            self._take_back()
            raise StoreError(
                f"can't write the event log {self.path}: only part of an event was written",
                way_to_room(_NO_ROOM),
            )
        self.size += written
        self._written_ns = time.time_ns()

    @property
    def fd(self) -> int:
        return self._fd

    @property
    def is_torn(self) -> bool:
        return self._torn

    def was_appended(self, size: int, written_ns: int) -> None:
        """By somebody else of this process: whole lines."""
        self.size += size
        self._written_ns = written_ns

    def failed(self) -> StoreError:
        """Of somebody else's line, what is there is taken back."""
        self._take_back()
        return StoreError(
            f"can't write the event log {self.path}: only part of an event was written",
            way_to_room(_NO_ROOM),
        )

    def objection(self, folder: Folder, name: str) -> str:
        """What somebody has done to it; empty where nobody has."""
        held, found = os.fstat(self._fd), folder.status(name)
        if found is None:
            return "the journal was removed"
        if not os.path.samestat(found, held):
            return "the journal was replaced"
        if held.st_size != self.size and not self._torn:
            return "the journal was written to"
        # No process can set this time.
        if self._has_times and held.st_ctime_ns > self._written_ns + _ABOUT_THE_SAME_TIME_NS:
            return "the journal was changed"
        return ""

    def close(self) -> None:
        os.close(self._fd)

    def _take_back(self) -> None:
        self._torn = True
        try:
            self._cut_torn_line()
        except StoreError:
            pass  # The next append tries again, and fails if it can't.

    def _cut_torn_line(self) -> None:
        try:
            os.ftruncate(self._fd, self.size)
            self._written_ns = time.time_ns()
        except OSError as error:
            raise StoreError(
                f"can't repair the event log {self.path}: {error.strerror}",
                "choose another directory with --store",
            ) from error
        self._torn = False


def lock(fd: int) -> None:
    """A reader that looks whether the writer lives has the lock for a moment; whoever keeps it can
    keep nobody waiting. OSError where it can't be had."""
    for _ in range(_LOCK_ATTEMPTS):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            time.sleep(_LOCK_PAUSE_S)
    raise BlockingIOError(errno.EAGAIN, "another process has locked the journal")


def writer_lives(path: str) -> bool:
    try:
        # In the store of somebody else, it may be a FIFO, a terminal, or a link to one.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # of a device, say
    finally:
        os.close(fd)
    return False
