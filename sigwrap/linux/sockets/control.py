"""What goes with a message, in our hands: descriptors become duplicates of ours, and credentials
are those of the caller or none."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Sequence

from sigwrap.linux import procfs
from sigwrap.linux.pidfd import duplicate
from sigwrap.linux.sockets.asked import Control
from sigwrap.linux.taken import let_go

_SOL_SOCKET = 1
_SCM_RIGHTS, _SCM_CREDENTIALS = 1, 2
_CREDENTIALS = struct.Struct("=iII")  # pid, uid, gid
_MOST_DESCRIPTORS = 253  # SCM_MAX_FD
_MAY_NAME_OTHERS = 1 << 21  # CAP_SYS_ADMIN


class Carried:
    """`ready` for a message of ours."""

    __slots__ = ("_taken", "ready")

    def __init__(self, tid: int, pid: int, control: Sequence[Control]) -> None:
        """Raises OSError as the caller's call fails."""
        self._taken: list[int] = []
        self.ready: list[Control] = []
        try:
            for level, kind, data in control:
                if (level, kind) == (_SOL_SOCKET, _SCM_RIGHTS):
                    data = self._duplicates(tid, data)
                elif (level, kind) == (_SOL_SOCKET, _SCM_CREDENTIALS):
                    data = _own(pid, data)
                self.ready.append(Control(level, kind, data))
        except BaseException:
            self.close()
            raise

    def _duplicates(self, tid: int, data: bytes) -> bytes:
        count = len(data) // 4
        if len(self._taken) + count > _MOST_DESCRIPTORS:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        for number in struct.unpack_from(f"={count}i", data):
            self._taken.append(duplicate(tid, number))
        return struct.pack(f"={count}i", *self._taken[len(self._taken) - count :])

    def close(self) -> None:
        while self._taken:
            let_go(self._taken.pop())


def _own(pid: int, data: bytes) -> bytes:
    """A supervisor that runs as root could claim to be anybody, and another one only itself."""
    if len(data) != _CREDENTIALS.size:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
    claimed, uid, gid = _CREDENTIALS.unpack(data)
    rights = procfs.rights(pid)
    numbers = procfs.numbers(pid, "NSpid")
    if rights is None or claimed not in numbers[-1:] or (uid, gid) != (rights.uid, rights.gid):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))
    ours = procfs.rights("thread-self")
    may_name_it = ours is not None and ours.capabilities & _MAY_NAME_OTHERS
    return _CREDENTIALS.pack(pid if may_name_it else os.getpid(), uid, gid)
