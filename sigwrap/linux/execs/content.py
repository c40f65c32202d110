"""What is in a file that an exec would run: how it begins, its digest, and what is known of it for
as long as its state stays."""

from __future__ import annotations

import os
import time

from sigwrap.bare.digests import sha256
from sigwrap.hints import Generic, TypeVar
from sigwrap.linux import proc_files
from sigwrap.linux.execs.script import HEADER_BYTES
from sigwrap.linux.file_state import State
from sigwrap.linux.paths import MayWait

HASHED_AT_ONCE_BYTES = 4 * 1024 * 1024  # a few milliseconds
MAX_HASHED_BYTES = 1 << 30
READ_TO_COMPARE_BYTES = 8 << 20  # of all files of an exec together, in about 8 ms
_READ_AT_ONCE_BYTES = 1 << 18
_KEPT = 4096
_CTIME_GRAIN_NS = 100_000_000  # two writes within one tick of a coarse clock look the same

LEASED = "another process holds a lease on the file"

_T = TypeVar("_T")


def has_settled(state: State) -> bool:
    """A write changes a file's ctime; two within one tick of a coarse clock may not, so of a file
    that has just been changed nothing is kept."""
    seconds, nanoseconds = state.changed
    return time.time_ns() - seconds * 1_000_000_000 - nanoseconds > _CTIME_GRAIN_NS


class KnownByState(Generic[_T]):
    """What is known of a file for as long as its state stays."""

    def __init__(self) -> None:
        self._known: dict[State, _T] = {}
        self.get = self._known.get

    def keep(self, state: State, found: _T) -> None:
        if has_settled(state):
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[state] = found


_headers = KnownByState[bytes]()


def reopen(fd: int, *, may_wait: bool = False) -> int:
    """To be read. Whoever has a lease on a file lets others wait until he gives it up."""
    return proc_files.open_file(
        f"/proc/self/fd/{fd}", os.O_RDONLY | (0 if may_wait else os.O_NONBLOCK)
    )


def header(fd: int, state: State, *, may_wait: bool) -> bytes | None:
    """None where we may not read it. A write that doesn't change the file's state (through a
    mapping) is found out when another image is loaded. Raises MayWait."""
    known = _headers.get(state)
    if known is not None:
        return known
    try:
        readable = reopen(fd, may_wait=may_wait)
    except PermissionError:
        return None
    except BlockingIOError as leased:
        raise MayWait(LEASED) from leased
    try:
        found = os.read(readable, HEADER_BYTES)
    finally:
        os.close(readable)
    _headers.keep(state, found)
    return found


def await_lease(fd: int) -> None:
    """Whoever has one is told to give it up, and has 45 s for that."""
    os.close(reopen(fd, may_wait=True))


def digest(fd: int) -> str:
    """Empty, which no rule names, where the file can't be read, is too large to wait for, or is
    leased: at the exec stop it is another then."""
    try:
        readable = reopen(fd)
        with open(readable, "rb", buffering=0) as file:
            if os.fstat(readable).st_size > MAX_HASHED_BYTES:
                return ""
            found = sha256()
            while piece := file.read(_READ_AT_ONCE_BYTES):
                found.update(piece)
            return found.hexdigest()
    except OSError:
        return ""


def fingerprint(fd: int, state: State, *, by_state_alone: bool) -> str:
    """So that a change shows: every write and every rename over it changes the state, and stores
    through a mapping that is dirty already change the digest. By another mount, other files lie
    beside the same one."""
    known = f"{state.mount} {state.inode} {state.size} {state.changed}"
    return known if by_state_alone else f"{known} {digest(fd)}"
