"""What is in a file that an exec would run: how it begins, and its digest."""

from __future__ import annotations

import hashlib
import os
import time

from sigwrap.linux import procfs
from sigwrap.linux.execs.script import HEADER_BYTES
from sigwrap.linux.paths import MayWait, State

HASHED_AT_ONCE_BYTES = 4 * 1024 * 1024  # a few milliseconds
_MAX_HASHED_BYTES = 1 << 30
_MOST_FINGERPRINTED_BYTES = 16 << 20  # in about 20 ms
_HEADERS_KEPT = 4096
_CTIME_GRAIN_NS = 100_000_000  # two writes within one tick of a coarse clock look the same

LEASED = "somebody holds a lease on the file"

_headers: dict[State, bytes] = {}


def header(fd: int, state: State, *, may_wait: bool) -> bytes | None:
    """None where we may not read it. Known by the file's state: a write changes its ctime, and one
    that doesn't (through a mapping) is found out when another image is loaded. Raises MayWait."""
    known = _headers.get(state)
    if known is not None:
        return known
    # Whoever has a lease on a file lets others wait until he gives it up.
    flags = os.O_RDONLY | os.O_CLOEXEC | (0 if may_wait else os.O_NONBLOCK)
    try:
        readable = procfs.open_file(f"/proc/self/fd/{fd}", flags)
    except PermissionError:
        return None
    except BlockingIOError as leased:
        raise MayWait(LEASED) from leased
    try:
        found = os.read(readable, HEADER_BYTES)
    finally:
        os.close(readable)
    seconds, nanoseconds = state.changed
    if time.time_ns() - seconds * 1_000_000_000 - nanoseconds > _CTIME_GRAIN_NS:
        if len(_headers) >= _HEADERS_KEPT:
            _headers.clear()
        _headers[state] = found
    return found


def await_lease(fd: int) -> None:
    """Whoever has one is told to give it up, and has 45 s for that."""
    os.close(procfs.open_file(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC))


def digest(fd: int) -> str:
    """Empty, which no rule names, where the file can't be read, is too large to wait for, or is
    leased: at the exec stop it is another then."""
    try:
        readable = procfs.open_file(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_NONBLOCK)
        with open(readable, "rb", buffering=0) as file:
            if os.fstat(readable).st_size > _MAX_HASHED_BYTES:
                return ""
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


def fingerprint(fd: int, state: State, *, by_state_alone: bool) -> str:
    """So that a change shows: every write and every rename over it changes the state, and stores
    through a mapping that is dirty already change the digest. Of a large file that is left out:
    it would hold up everybody."""
    known = f"{state.inode} {state.size} {state.changed}"
    if by_state_alone or state.size > _MOST_FINGERPRINTED_BYTES:
        return known
    return f"{known} {digest(fd)}"
