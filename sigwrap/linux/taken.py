"""Descriptors of other processes, taken as our own, and let go again.

To close one is a request to whoever serves its file (FUSE and NFS flush at each close), and he may
take his time. So a file is taken only where its type of file system is local; one that was put in
its place in that very moment is closed by a thread that nobody waits for.
"""

from __future__ import annotations

import _thread
import errno
import os
import stat
from collections.abc import Callable

from sigwrap.linux import procfs
from sigwrap.linux.mounts import is_of_local_type
from sigwrap.linux.paths import kind_of


def could_stall(pid: int, holder: int, fd: int) -> bool:
    """Whether to close it could: a file that `holder` has open, on a mount that `pid` sees."""
    try:
        path = b"/proc/%d/fd/%d" % (holder, fd)
        if kind_of(path)[0] != stat.S_IFREG:
            return False
        is_nowhere = not procfs.link(os.fsdecode(path)).startswith("/")  # a pidfd is
        return not is_nowhere and not is_of_local_type(pid, holder, fd)
    except FileNotFoundError:
        return False  # whoever takes it is told that it is none
    except OSError:
        return True


def taken(pid: int, fd: int, take: Callable[[], int]) -> int:
    """What `take` gives, of `pid`'s descriptor `fd`. OSError where it is not to be taken."""
    if could_stall(pid, pid, fd):
        raise PermissionError(errno.EPERM, "its file system may answer late")
    found = take()
    if could_stall(pid, os.getpid(), found):  # another thread has put it there since
        _thread.start_new_thread(os.close, (found,))
        raise PermissionError(errno.EPERM, "its file system may answer late")
    return found
