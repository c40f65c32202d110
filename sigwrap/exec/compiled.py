"""Call _repeated.c, the fast path for execs of files that have run before.

The extension exists if the build had a compiler. Without it, sigwrap judges every exec anew, with
the same result.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from sigwrap.bare import Any, NamedTuple
from sigwrap.kernel import procfs
from sigwrap.kernel.file_state import State
from sigwrap.kernel.paths import OurView
from sigwrap.kernel.seccomp import Notification, read_notification

try:
    from sigwrap.exec import _repeated as _native
except ImportError:
    _native = None  # type: ignore[assignment]

PURE_VARIABLE = "SIGWRAP_PURE_PYTHON"

# Outcomes of serve, in the order of the enum in _repeated.c.
QUIET, LEFT, LEFT_AFTER_ENDS, HELD, UNWRITTEN, BROKEN = range(6)

LONGEST_LINE = 8192  # a row of the log; a longer one is cut (log/codec.py)


class Facts(NamedTuple):
    """The facts of an exec that the extension has gathered."""

    key: bytes  # all fields but `fd`, joined
    path: bytes  # as the caller wrote it
    real: bytes
    cwd: bytes
    comm: bytes
    line: bytes  # the arguments, each with its NUL
    depth: int
    fd: int  # of the file
    mode: int
    number: int
    device: int
    size: int
    changed_s: int
    changed_ns: int
    mount: int

    @property
    def state(self) -> State:
        changed = (self.changed_s, self.changed_ns)
        return State(self.mode, (self.device, self.number), self.size, changed, self.mount)


class SeenProcess(NamedTuple):
    """A process that the extension saw first."""

    pid: int
    ppid: int
    depth: int
    pidfd: int  # -1 if it has ended, or cannot be watched
    start_time: int
    comm: bytes
    forked: tuple[int, int, int]  # its image after the fork
    image: tuple[int, int, int]  # after its last exec
    entry: list[Any] | None  # of its last exec
    has_ended: bool


class Held(NamedTuple):
    """An exec that went on and is not over, or has an unexpected result."""

    fd: int  # of the file that was judged
    entry: list[Any]
    wait_status: int  # -1: there is none yet


class Served(NamedTuple):
    outcome: int
    request: bytes  # for the slow path, or already answered; otherwise empty
    seq: int
    head: bytes
    written_bytes: int
    written_ns: int
    rows: list[tuple[int, int, str, int, str, str]]
    processes: list[tuple[Any, ...]]
    # Their earlier execs: the process's index, entries, images.
    earlier: list[tuple[int, list[Any], tuple[int, int, int]]]
    hits: list[tuple[list[Any], int]]  # entries, and when (monotonic)
    ended: list[int]  # pidfds
    waited: list[tuple[int, int]]  # results of wait(2) for others; a pid of -1: no child is left
    held: tuple[Any, ...] | None
    is_torn: bool  # a part of a row may be written

    def notification(self) -> Notification:
        return read_notification(self.request)


def is_wanted() -> bool:
    return _native is not None and not os.environb.get(PURE_VARIABLE.encode())


def is_available() -> bool:
    """Return whether the extension is usable: in a run, which has /proc open by then."""
    return is_wanted() and bool(procfs.held())


class Native:
    """The extension of one session."""

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
        """Set up the extension. `crowd`: whether to count processes; most children and processes.
        `exits`: the event of an end, and its text around the parent's pid and the status."""
        (proc,) = procfs.held()
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
        paths: dict[bytes, Any],
        judge: Callable[..., None],
        seq: int,
        head: bytes,
        room: int,
        deadline_ns: int,
        request: bytes,
    ) -> Served:
        """Answer requests until one needs the slow path, or something else happens. `paths`: of
        files that may go on, which `judge` adds to `remembered`; it gets the fields of Facts.
        `room`: how many bytes the log may grow before the next check."""
        return Served(
            *_native.serve(
                poll,
                ends,
                by_pid,
                remembered,
                paths,
                judge,
                seq,
                head,
                room,
                deadline_ns,
                request,
            )
        )
