"""A log without a writer of its own: several processes append to its journal in turn.

The journal is locked for each event. The log has no end. `sigwrap sessions recover` merges it into
a database; later events then go to another log.
"""

from __future__ import annotations

import errno
import os
import stat
import time

from sigwrap.errors import StoreError
from sigwrap.events import Payload
from sigwrap.kernel.limits import way_to_room
from sigwrap.log.codec import (
    canonical_row,
    chain_key,
    encode_payload,
    genesis,
    hasher,
    journal_line,
    next_hash,
)
from sigwrap.log.folder import (
    ATTEMPTS,
    DATABASE_SUFFIX,
    JOURNAL_SUFFIX,
    Folder,
    sessions_folder,
)
from sigwrap.log.journal import JournalFile, lock

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_TAIL_BYTES = 1 << 16  # more than a torn line can have, except the first
_MOST_LOGS = 100
_LOCKED_WITHIN_S = 3.0


def append(
    store: str, name: str, key: bytes | None, start: Payload, event: tuple[str, Payload]
) -> str:
    """Record the event, and before the first one the start. Returns the session's id."""
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
            fd = os.open(journal, _FLAGS, 0o600, dir_fd=folder.fd)
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
