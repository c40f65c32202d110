"""Whether a file lies where sigwrap's own names for files hold.

A caller can have mounts of its own (a mount namespace, or a folder that somebody opened in one) and
a root of its own. There `/usr/bin/git` can be any program: the path says nothing, and neither do
the libraries that the program is going to load. A mount's id tells it from all others, as long as
the mount is there; a file that is held by a descriptor keeps its mount.
"""

from __future__ import annotations

import _thread
import os
import select

from sigwrap.linux import procfs
from sigwrap.linux.mounts import read_mountinfo
from sigwrap.linux.paths import Place, mount_of

_CHUNK = 1 << 16


class Mounts:
    """Those of the mount namespace that sigwrap itself is in, below its root."""

    def __init__(self, our_root: Place) -> None:
        self._root_mount = our_root[3]  # not in the list where the root is a folder within a mount
        self._list_fd = procfs.open_file("/proc/self/mountinfo")
        self._changes = select.poll()
        self._changes.register(self._list_fd, select.POLLPRI)
        self._lock = _thread.allocate_lock()  # a look may be taken aside from the loop
        self._ids = self._read()

    def hold(self, fd: int) -> bool:
        """Whether the file lies on one of them. After it was opened: ids are given away again, and
        each change of the list is noticed by then."""
        mount = mount_of(fd)
        if mount == self._root_mount:
            return True
        with self._lock:
            if self._changes.poll(0):
                self._ids = self._read()
            return mount in self._ids

    def _read(self) -> frozenset[int]:
        os.lseek(self._list_fd, 0, os.SEEK_SET)
        data = b""
        while chunk := os.read(self._list_fd, _CHUNK):
            data += chunk
        return frozenset(each.number for each in read_mountinfo(data))
