"""A lock on a directory that says that a process attends to it. The lock ends with that process."""

from __future__ import annotations

import errno
import fcntl
import os
import struct

_LOCK = struct.Struct("@hhqqi")  # struct flock: type, whence, start, length, pid


def attend(folder: int) -> None:
    """Take the lock; OSError if there are no such locks."""
    fcntl.fcntl(folder, fcntl.F_OFD_SETLK, _LOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0))


def is_attended(folder: int) -> bool:
    """Return whether any process has the lock, a process in a session included."""
    asked = _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    try:
        found = fcntl.fcntl(folder, fcntl.F_OFD_GETLK, asked)
    except OSError as failure:
        if failure.errno in (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS):
            return False
        raise
    return bool(_LOCK.unpack(found)[0] != fcntl.F_UNLCK)
