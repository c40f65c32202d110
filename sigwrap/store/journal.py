"""The journal: an append-only text file, one line an event, ahead of the database.

One write(2) puts an event where SIGKILL of sigwrap can't reach it, for a twentieth of the price of
a committed INSERT. An exclusive flock on the file says that the session's writer lives: the kernel
drops the lock with the last descriptor, however the process ends. A forked child shares the lock
until it execs (O_CLOEXEC).
"""

from __future__ import annotations

import fcntl
import os

from sigwrap.errors import StoreError


class Journal:
    def __init__(self, path: str, fd: int, *, durable: bool) -> None:
        self.path = path
        self.size = 0
        self._fd = fd
        self._durable = durable
        self._torn = False

    @classmethod
    def create(cls, path: str, *, durable: bool) -> Journal:
        """OSError where it can't."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        fd = os.open(path, flags, 0o600)
        # A reader that checks whether the writer lives holds a shared lock for a moment: wait.
        fcntl.flock(fd, fcntl.LOCK_EX)
        return cls(path, fd, durable=durable)

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
                f"can't write the event log {self.path}: {error.strerror}",
                "make room, or choose another folder with --store",
            ) from error
        if written != len(line):
            self._take_back()
            raise StoreError(
                f"can't write the event log {self.path}: only part of an event fitted",
                "make room, or choose another folder with --store",
            )
        self.size += written

    def truncate(self) -> None:
        """Only for a caller who has every line in the database."""
        try:
            os.ftruncate(self._fd, 0)
        except OSError:
            return  # A journal that is too long is harmless.
        self.size = 0
        self._torn = False

    def close(self, *, remove: bool) -> None:
        if remove:
            try:
                os.unlink(self.path)
            except OSError:
                pass  # Readers find its rows in the database as well, and they agree.
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
        except OSError as error:
            raise StoreError(
                f"can't repair the event log {self.path}: {error.strerror}",
                "choose another folder with --store",
            ) from error
        self._torn = False


def writer_lives(path: str) -> bool:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False
