"""The way to _repeated.c, which lets execs go on that were judged before, by the very same facts.

The extension is there where a compiler was at the build. Where it isn't, every exec is judged anew,
with the same result.
"""

from __future__ import annotations

import os
import struct

from sigwrap.hints import Any
from sigwrap.linux import proc_files
from sigwrap.linux.paths import OurView, State
from sigwrap.linux.seccomp import Notification, read_notification
from sigwrap.tuples import NamedTuple

try:
    from sigwrap.linux.execs import _repeated as _native
except ImportError:
    _native = None  # type: ignore[assignment]

PURE_VARIABLE = "SIGWRAP_PURE_PYTHON"

# What serve says: the order of the enum in _repeated.c.
QUIET, LEFT, LEFT_AFTER_ENDS, HELD, UNWRITTEN = range(5)

_NUMBERS = struct.Struct("<8Q")
_LENGTH = struct.Struct("<I")
_MOST_WORDS = 63
_LONGEST_WORD = 1023
LONGEST_LINE = 8192  # arguments, and a row of the log
_LONGEST_PATH = 4095


class Facts(NamedTuple):
    """What an exec was judged by, as bytes."""

    path: bytes  # as the caller wrote it
    real: bytes
    cwd: bytes
    comm: bytes
    argv: list[bytes]
    depth: int
    state: State


class SeenProcess(NamedTuple):
    """One that the extension was the first to see."""

    pid: int
    ppid: int
    depth: int
    pidfd: int  # -1 where it has ended, or can't be watched
    start_time: int
    comm: bytes
    forked: tuple[int, int, int]  # its image, as the fork left it
    image: tuple[int, int, int]  # since its last exec
    entry: list[Any] | None  # by which it went on the last time
    has_ended: bool


class Held(NamedTuple):
    """An exec that was let go on and is not over, or not as it should be."""

    fd: int  # of the file that was judged
    entry: list[Any]
    wait_status: int  # -1: there is none yet


class Served(NamedTuple):
    outcome: int
    request: bytes  # which is left to the long way, or was let go on; else empty
    seq: int
    head: bytes
    written_bytes: int
    written_ns: int
    rows: list[tuple[int, int, str, int, str, str]]
    processes: list[tuple[Any, ...]]
    hits: list[tuple[list[Any], int]]  # entries, and when (monotonic)
    ended: list[int]  # pidfds
    waited: list[tuple[int, int]]  # what wait(2) says of others; a pid of -1: nobody is left
    held: tuple[Any, ...] | None

    def notification(self) -> Notification:
        return read_notification(self.request)


def is_wanted() -> bool:
    return _native is not None and not os.environb.get(PURE_VARIABLE.encode())


def is_available() -> bool:
    """In a run: its descriptor of /proc is held by then."""
    return is_wanted() and bool(proc_files.held())


def key_of(facts: Facts) -> bytes:
    """As find() in _repeated.c packs it. Empty where it doesn't look at such a one."""
    words = [len(word) for word in facts.argv]
    if not 0 < len(words) <= _MOST_WORDS or max(words) > _LONGEST_WORD:
        return b""
    line = b"\0".join(facts.argv) + b"\0"
    texts = (facts.path, facts.real, facts.cwd, facts.comm, line)
    if len(line) > LONGEST_LINE or max(map(len, texts[:4])) > _LONGEST_PATH:
        return b""
    state = facts.state
    device, number = state.inode
    numbers = (facts.depth, state.mode, number, device, state.size, *state.changed, state.mount)
    return b"".join(_LENGTH.pack(len(text)) + text for text in texts) + _NUMBERS.pack(*numbers)


class Native:
    """One session's extension."""

    def __init__(
        self,
        *,
        listener: int,
        journal: int,
        child_signals: int,
        view: OurView,
        first_left_to_others: int,
        crowd: tuple[bool, int, int],
        key: bytes,
        exits: tuple[bytes, bytes, bytes],
    ) -> None:
        """`crowd`: whether processes are counted, and how many children and processes there may
        be. `exits`: the event of an end, and its text around the parent's pid and the status."""
        (proc,) = proc_files.held()
        inode, major, minor, mount = view.root
        counts, most_children, most_processes = crowd
        event, before, after = exits
        _native.set_up(
            listener,
            journal,
            child_signals,
            proc,
            (inode, major, minor, mount),
            view.mounts.id_bit,
            first_left_to_others,
            counts,
            most_children,
            most_processes,
            key,
            event,
            before,
            after,
        )

    def serve(
        self,
        *,
        poll: int,
        ends: int,
        by_pid: dict[int, Any],
        remembered: dict[bytes, list[Any]],
        paths: dict[bytes, int],
        seq: int,
        head: bytes,
        room: int,
        deadline_ns: int,
        request: bytes,
    ) -> Served:
        """Answers requests until one is left to the long way, or something else happens. `room`:
        how many bytes the log may take before somebody has to look."""
        return Served(
            *_native.serve(
                poll, ends, by_pid, remembered, paths, seq, head, room, deadline_ns, request
            )
        )
