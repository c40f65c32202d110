"""The results of _repeated.c, the fast path for execs of files that have run before.

The extension exists if the build had a compiler. Without it, sigwrap judges every exec anew, with
the same result.
"""

from __future__ import annotations

import os

from sigwrap.bare import Any, NamedTuple
from sigwrap.kernel import procfs
from sigwrap.kernel.seccomp import Notification, read_notification

native: Any
try:
    from sigwrap.exec import _repeated as native  # type: ignore[attr-defined, no-redef]
except ImportError:
    native = None

PURE_VARIABLE = "SIGWRAP_PURE_PYTHON"

# Outcomes of serve, in the order of the enum in _repeated.c.
QUIET, LEFT, LEFT_AFTER_ENDS, HELD, UNWRITTEN, BROKEN = range(6)

LONGEST_LINE = 8192  # a row of the log; a longer one is cut (log/codec.py)


class SeenProcess(NamedTuple):
    """A process that the extension saw first."""

    pid: int
    ppid: int
    depth: int
    pidfd: int  # -1 if it has ended, or cannot be watched
    start_time: int
    comm: bytes
    forked: tuple[int, int, int]  # its image after the fork
    runs: list[tuple[list[Any], tuple[int, int, int]]]  # its execs: their entries and images
    has_ended: bool


class HeldExec(NamedTuple):
    """An exec that went on and is not over, or has an unexpected result."""

    fd: int  # of the file that was judged
    entry: list[Any]
    wait_status: int  # -1: there is none yet


class Served(NamedTuple):
    outcome: int
    request: bytes  # for the slow path, or already answered; otherwise empty
    head: bytes
    written_bytes: int
    written_ns: int
    rows: list[tuple[int, int, str, int, str, str]]
    processes: list[tuple[Any, ...]]
    hits: list[tuple[list[Any], int]]  # entries, and when (monotonic)
    ended: list[int]  # pidfds
    waited: list[tuple[int, int]]  # results of wait(2) for others; a pid of -1: no child is left
    held: tuple[Any, ...] | None
    is_torn: bool  # a part of a row may be written

    def notification(self) -> Notification:
        return read_notification(self.request)


def is_wanted() -> bool:
    return native is not None and not os.environb.get(PURE_VARIABLE.encode())


def is_available() -> bool:
    """Return whether the extension is usable: in a run, which has /proc open by then."""
    return is_wanted() and bool(procfs.held())
