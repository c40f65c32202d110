from __future__ import annotations

import os
import signal
import struct
import time
from collections.abc import Callable
from fcntl import ioctl

from sigwrap.linux import procfs

_PIDFD_GET_INFO = 0xC040FF0B
_PIDFD_INFO_EXIT = 1 << 3
_ORPHAN_ROUNDS = 500
_REAPED_AT_ONCE = 1000
_PIDFD_INFO = struct.Struct("<Q52xi")


def exit_status_by_pidfd(pidfd: int) -> int | None:
    """The wait(2) status of any process once its parent has reaped it (Linux 6.15)."""
    info = bytearray(_PIDFD_INFO.size)
    _PIDFD_INFO.pack_into(info, 0, _PIDFD_INFO_EXIT, 0)
    try:
        ioctl(pidfd, _PIDFD_GET_INFO, info, True)
    except OSError:
        return None
    mask: int
    status: int
    mask, status = _PIDFD_INFO.unpack(info)
    return status if mask & _PIDFD_INFO_EXIT else None


def descendants(ancestor: int) -> list[int]:
    """Zombies left out: they need reaping, not killing."""
    return [found.pid for found in _below(ancestor) if not found.has_ended]


def children(pid: int) -> list[int]:
    """Of all its threads; those that have ended and wait to be reaped as well."""
    if not _has_children_files():
        return [found.pid for found in _by_parent().get(pid, ())]
    return [
        child
        for tid in procfs.threads(pid)
        for child in procfs.children(f"/proc/{pid}/task/{tid}/children")
    ]


def count_descendants(ancestor: int) -> int:
    """With zombies, which take up room just the same."""
    if not _has_children_files():
        return len(_below(ancestor))
    seen: set[int] = set()
    # An orphan comes to the subreaper, maybe behind the reader's back: hence its children again.
    while level := [pid for pid in children(ancestor) if pid not in seen]:
        while level:
            seen.update(level)
            level = [child for pid in level for child in children(pid) if child not in seen]
    return len(seen)


def _has_children_files() -> bool:
    """A kernel can be built without them; they spare reading all of /proc."""
    return procfs.exists("/proc/thread-self/children")


def _below(ancestor: int) -> list[procfs.Stat]:
    by_parent = _by_parent()
    below = []
    level = by_parent.get(ancestor, [])
    while level:
        below += level
        level = [child for found in level for child in by_parent.get(found.pid, ())]
    return below


def _by_parent() -> dict[int, list[procfs.Stat]]:
    found: dict[int, list[procfs.Stat]] = {}
    for pid in procfs.all_pids():
        process = procfs.stat(pid)
        if process is not None:
            found.setdefault(process.ppid, []).append(process)
    return found


def send(pid: int, signal_number: int) -> bool:
    """False where it is gone or not ours to signal."""
    try:
        os.kill(pid, signal_number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


Reaped = Callable[[int, int], None]


def kill_descendants(ancestor: int, reaped: Reaped, *, timeout_s: float) -> bool:
    """False where some are left when the time is up: call again.

    For a subreaper nothing can leave its tree, so it is empty when no child is left. Sweeps stop
    all, then kill all; what forks faster than a sweep reads is stopped by the next. A relay, where
    each process forks one and ends, is gone whenever a sweep comes: but its orphans are ours, so
    between sweeps our own children are killed as fast as they come. Zombies are reaped on the way,
    or they would fill the process table."""
    killed: set[int] = set()
    deadline = time.monotonic() + timeout_s
    while reap(reaped):
        alive = descendants(ancestor)
        for pid in alive:
            if pid not in killed:
                send(pid, signal.SIGSTOP)
        fresh = [pid for pid in alive if send(pid, signal.SIGKILL) and pid not in killed]
        killed.update(fresh)
        _kill_orphans(reaped)
        if time.monotonic() > deadline:
            return False
        if not fresh:
            time.sleep(0.001)
    return True


def reap(reaped: Reaped) -> bool:
    """False where no child is left at all."""
    for _ in range(_REAPED_AT_ONCE):
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False
        if pid == 0:
            return True
        if not os.WIFSTOPPED(status):
            reaped(pid, status)
    return True


def _kill_orphans(reaped: Reaped) -> None:
    path = f"/proc/self/task/{os.getpid()}/children"
    for _ in range(_ORPHAN_ROUNDS):
        children = procfs.children(path)
        for pid in children:
            send(pid, signal.SIGKILL)
        if not children or not reap(reaped):
            return
