"""Read a journal: an append-only text file, one line per event, with all events of a running
session; and append to one that has no writer of its own.

After one write(2), an event survives SIGKILL of sigwrap; a committed INSERT would cost twenty times
as much. An exclusive flock on the file tells readers that the session's writer is running: the
kernel drops the lock with the last descriptor, however the process ends. A forked child shares the
lock until its exec (O_CLOEXEC).
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator

from sigwrap.bare import IO
from sigwrap.errors import StoreError
from sigwrap.events import Payload
from sigwrap.kernel.descriptors import open_plain_file
from sigwrap.kernel.limits import way_to_room
from sigwrap.log.codec import (
    MAX_PAYLOAD_CHARACTERS,
    Row,
    canonical_row,
    chain_key,
    encode_payload,
    genesis,
    hasher,
    journal_line,
    next_hash,
    parse_journal_line,
)
from sigwrap.log.folder import ATTEMPTS, DATABASE_SUFFIX, JOURNAL_SUFFIX, Folder, sessions_folder

_LOCK_WITHIN_S, _LOCK_PAUSE_S = 0.1, 0.005
_LONGEST_LINE = MAX_PAYLOAD_CHARACTERS + (1 << 10)
_TAIL_BYTES = 1 << 16
_TAILS_BYTES = (_TAIL_BYTES, 1 << 20, 2 * _LONGEST_LINE)


class JournalFile:
    """A journal as a reader sees it; its writer only ever appends to it."""

    def __init__(self, path: str, file: IO[bytes]) -> None:
        self._path = path
        self._file = file
        self._read_to = 0
        self._lines = 0

    @classmethod
    def open(cls, path: str) -> JournalFile | None:
        """Return None if the log was closed cleanly: everything is in the database."""
        try:
            return cls(path, open_plain_file(path))
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"can't read {path}: {error.strerror}") from error

    def close(self) -> None:
        self._file.close()

    @property
    def is_empty(self) -> bool:
        """Return whether no event was recorded."""
        return next(self.rows(), None) is None

    @property
    def is_in_place(self) -> bool:
        """Return whether the file was neither replaced nor removed."""
        try:
            return os.path.samestat(os.lstat(self._path), os.fstat(self._file.fileno()))
        except OSError:
            return False

    def rows(self) -> Iterator[Row]:
        """Yield all rows but a torn last line: append never returned for that event."""
        self._read_to = self._lines = 0
        return self.new_rows()

    def new_rows(self) -> Iterator[Row]:
        """Yield the rows that were appended since the last read."""
        self._file.seek(self._read_to)
        while line := self._file.readline(_LONGEST_LINE):
            if not line.endswith(b"\n"):
                if len(line) == _LONGEST_LINE:
                    raise self._unreadable(self._lines + 1)
                return
            self._lines += 1
            self._read_to += len(line)
            try:
                row = parse_journal_line(line)
            except ValueError as error:
                raise self._unreadable(self._lines) from error
            yield row

    def skip_to(self, last_bytes: int) -> None:
        """Leave out all but the rows that begin among the last bytes."""
        start = max(os.fstat(self._file.fileno()).st_size - last_bytes, 0)
        if start <= self._read_to:
            return
        self._file.seek(start)
        rest = self._file.readline(_LONGEST_LINE)
        self._read_to = start + len(rest) if rest.endswith(b"\n") else start

    @property
    def unread_bytes(self) -> int:
        return os.fstat(self._file.fileno()).st_size - self._read_to

    def last(self) -> Row | None:
        """Return the last row without reading those before it."""
        for size in _TAILS_BYTES:
            lines, is_whole = self._tail(size)
            if lines:
                try:
                    return parse_journal_line(lines[-1])
                except ValueError:
                    break
            if is_whole:
                return None
        raise StoreError(f"the last line of {self._path} can't be read")

    def latest(self) -> list[Row]:
        """Return the rows in the last bytes, or none if one of them can't be read."""
        try:
            return [parse_journal_line(line) for line in self._tail(_TAIL_BYTES)[0]]
        except ValueError:
            return []

    def _tail(self, size: int) -> tuple[list[bytes], bool]:
        """Return the complete lines in the last bytes, and whether that is the whole file."""
        start = max(os.fstat(self._file.fileno()).st_size - size, 0)
        self._file.seek(start)
        tail = self._file.read(size)
        lines = tail[: tail.rfind(b"\n") + 1].splitlines(keepends=True)
        return lines[start > 0 :], not start

    def _unreadable(self, line_number: int) -> StoreError:
        return StoreError(f"line {line_number} of the journal {self._path} can't be read")


def lock(fd: int, within_s: float = _LOCK_WITHIN_S) -> None:
    """Take the exclusive lock; raise BlockingIOError if another process keeps it.

    A reader that checks for a writer has the lock for a moment, hence the retries.
    """
    until_s = time.monotonic() + within_s
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > until_s:
                reason = "another process has locked the journal"
                raise BlockingIOError(errno.EAGAIN, reason) from None
            time.sleep(_LOCK_PAUSE_S)


def writer_lives(path: str) -> bool:
    try:
        # In another user's store, the path may lead to a FIFO or a terminal.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # such as a device
    finally:
        os.close(fd)
    return False


# A log that several processes append to in turn.

_SHARED_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MOST_LOGS = 100
_LOCKED_WITHIN_S = 3.0


def append_in_turn(
    store: str, name: str, key: bytes | None, start: Payload, event: tuple[str, Payload]
) -> str:
    """Record an event in a log without a writer of its own, and before the first one the start.
    Return the session's id.

    Several processes append to it, and lock its journal for each event. The log has no end. After
    `sigwrap sessions recover` has merged it into a database, later events go to another log.
    """
    try:
        folder = Folder.make(sessions_folder(store))
        try:
            session_id, fd = _locked(folder, name)
            try:
                _append(session_id, fd, chain_key(key), {**start, "session_id": session_id}, event)
            finally:
                os.close(fd)
        finally:
            folder.close()
    except OSError as error:
        raise StoreError(
            f"can't write the event log {name} in {sessions_folder(store)}: {error.strerror}",
            way_to_room("choose a writable directory with --store or $SIGWRAP_STORE"),
        ) from error
    return session_id


def _locked(folder: Folder, name: str) -> tuple[str, int]:
    """Return the id and journal of the first log of that name that is not merged yet."""
    for number in range(1, _MOST_LOGS):
        session_id = name if number == 1 else f"{name}-{number}"
        journal = session_id + JOURNAL_SUFFIX
        if folder.status(session_id + DATABASE_SUFFIX) is not None:
            continue
        for _ in range(ATTEMPTS):
            fd = os.open(journal, _SHARED_FLAGS, 0o600, dir_fd=folder.fd)
            try:
                found = os.fstat(fd)
                if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid():
                    raise OSError(errno.EPERM, f"{journal} is not a file of this user")
                lock(fd, _LOCKED_WITHIN_S)
                if folder.has(journal, fd):  # otherwise it was removed or merged meanwhile
                    return session_id, fd
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)
    raise OSError(errno.EBUSY, "another program keeps replacing it")


def _append(
    session_id: str, fd: int, key: bytes, start: Payload, event: tuple[str, Payload]
) -> None:
    _cut_torn_line(fd)
    size, empty = os.fstat(fd).st_size, hasher(key)
    with os.fdopen(os.dup(fd), "rb") as file:
        last = JournalFile(session_id, file).last()
    seq, head = (last.seq, bytes.fromhex(last.hash)) if last else (0, genesis(session_id, key))
    lines = []
    for type_name, payload in [event] if last else [("session_started", start), event]:
        seq += 1
        text = encode_payload(type_name, payload)
        row = canonical_row(seq, time.time_ns(), type_name, os.getpid(), text)
        head = next_hash(head, row, empty)
        lines.append(journal_line(row, head.hex()))
    text_of_all = b"".join(lines)
    if os.write(fd, text_of_all) != len(text_of_all):
        os.ftruncate(fd, size)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _cut_torn_line(fd: int) -> None:
    """Cut the torn line of a process that was killed while it wrote."""
    size = os.fstat(fd).st_size
    tail = os.pread(fd, _TAIL_BYTES, max(size - _TAIL_BYTES, 0))
    rest = len(tail) - tail.rfind(b"\n") - 1
    if rest == len(tail) < size:
        raise OSError(errno.EIO, "its last line is too long")
    if rest:
        os.ftruncate(fd, size - rest)
