"""That somebody is there, told by a lock on a folder: it ends with whoever holds it, and who asks
takes nothing."""

from __future__ import annotations

import errno
import fcntl
import os
import struct

_LOCK = struct.Struct("@hhqqi")  # struct flock: type, whence, start, length, pid


def come(folder: int) -> None:
    """OSError where there is no such lock to be had."""
    fcntl.fcntl(folder, fcntl.F_OFD_SETLK, _LOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0))


def is_somebody_there(folder: int) -> bool:
    """Anybody could be: the session itself as well."""
    asked = _LOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    try:
        found = fcntl.fcntl(folder, fcntl.F_OFD_GETLK, asked)
    except OSError as failure:
        if failure.errno in (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS):
            return False
        raise
    return bool(_LOCK.unpack(found)[0] != fcntl.F_UNLCK)
