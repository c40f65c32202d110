"""Opening what somebody else may have put there: a FIFO or a device would keep its reader."""

from __future__ import annotations

import errno
import os
import stat

from sigwrap.hints import IO


def open_plain_file(path: str) -> IO[bytes]:
    """OSError for what is no plain file, as for one that isn't there."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        mode = os.fstat(fd).st_mode
        if not stat.S_ISREG(mode):
            raise OSError(
                errno.EINVAL, f"it is {_KINDS.get(stat.S_IFMT(mode), 'not a regular file')}"
            )
        return open(fd, "rb")
    except BaseException:
        os.close(fd)
        raise


_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
