"""Duplicates of other processes' descriptors, and how to close them.

A close sends a request to the server of a FUSE or NFS file, which can block. So a file is
duplicated only if its file system is local. A separate thread closes a file that replaced it
meanwhile. It also closes sockets, which may linger (SO_LINGER) or hold others that do, and devices,
which may send their output first: the last close waits for that, and it can be ours. If too many
closes wait, no more descriptors are duplicated.
"""

from __future__ import annotations

import _thread
import errno
import os
import stat
from collections.abc import Callable

from sigwrap.bare import deque, socket, suppress
from sigwrap.linux.file_state import kind_of
from sigwrap.linux.mounts import is_on_local_device
from sigwrap.linux.paths import told_link

_SO_PASSRIGHTS = 83
_MOST_CLOSERS = 16
_LOCAL_MAJORS = frozenset({1, *range(136, 144)})  # memory devices, pseudo-terminals


class _Closers:
    """Threads that close descriptors; no request waits for them."""

    def __init__(self) -> None:
        self._lock = _thread.allocate_lock()
        self._waiting: deque[int] = deque()
        self.threads = 0

    @property
    def are_all_busy(self) -> bool:
        return self.threads >= _MOST_CLOSERS

    def close(self, fd: int) -> None:
        with self._lock:
            self._waiting.append(fd)
            if not self.are_all_busy:
                with suppress(RuntimeError):  # no thread can start: a running one closes it
                    _thread.start_new_thread(self._run, ())
                    self.threads += 1

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self.threads -= 1
                    return
                fd = self._waiting.popleft()
            with suppress(OSError):
                os.close(fd)


_closers = _Closers()


def could_stall(pid: int, holder: int, fd: int) -> bool:
    """Return whether a close could block. `holder` has it open, on a mount that `pid` sees."""
    try:
        path = f"/proc/{holder}/fd/{fd}"
        if kind_of(path.encode())[0] != stat.S_IFREG:
            return False
        is_nowhere = not (told_link(path) or "/").startswith("/")  # a pidfd, for example
        return not is_nowhere and not is_on_local_device(pid, holder, fd)
    except FileNotFoundError:
        return False  # the duplication fails with the right errno
    except OSError:
        return True


def taken(pid: int, fd: int, take: Callable[[], int]) -> int:
    """Return the duplicate that `take` makes of `pid`'s descriptor `fd`. OSError if none may be
    made."""
    if could_stall(pid, pid, fd):
        raise PermissionError(errno.EPERM, "its file system may be slow to answer")
    if _closers.are_all_busy and not _closes_at_once(b"/proc/%d/fd/%d" % (pid, fd)):
        raise PermissionError(errno.EPERM, "too many descriptors are still being closed")
    found = take()
    if could_stall(pid, os.getpid(), found):  # another thread has replaced the file
        _closers.close(found)
        raise PermissionError(errno.EPERM, "its file system may be slow to answer")
    return found


def closes_at_once(fd: int) -> bool:
    """Return whether the last close cannot block."""
    return _closes_at_once(b"/proc/self/fd/%d" % fd)


def refuse_descriptors(end: socket.socket) -> None:
    """Make the kernel refuse descriptors in messages: sigwrap would have to close them."""
    with suppress(OSError):  # before Linux 6.16, and for sockets that carry none
        end.setsockopt(socket.SOL_SOCKET, _SO_PASSRIGHTS, 0)


def let_go(fd: int) -> None:
    """Close a duplicate, or another descriptor that came from the process tree."""
    if closes_at_once(fd):
        os.close(fd)
    else:
        _closers.close(fd)


def _closes_at_once(path: bytes) -> bool:
    kind, major = kind_of(path)
    return kind != stat.S_IFSOCK and (kind != stat.S_IFCHR or major in _LOCAL_MAJORS)
