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
from collections.abc import Sequence

from sigwrap.linux import proc_files
from sigwrap.linux.file_state import Place, mount_of
from sigwrap.linux.mounts import Told, read_mountinfo, unescaped
from sigwrap.linux.paths import path_of

_CHUNK = 1 << 16


class Mounts:
    """Those of the mount namespace that sigwrap itself is in, below its root."""

    def __init__(self, our_root: Place) -> None:
        self._root_mount = our_root[3]  # not in the list where the root is a folder within a mount
        self._list_fd = proc_files.open_file("/proc/self/mountinfo")
        self._changes = select.poll()
        self._changes.register(self._list_fd, select.POLLPRI)
        self._lock = _thread.allocate_lock()  # a look may be taken aside from the loop
        self._ids = self._numbers()

    def hold(self, fd: int) -> bool:
        """Whether the file lies on one of them. After it was opened: ids are given away again, and
        each change of the list is noticed by then."""
        mount = mount_of(fd)
        if mount == self._root_mount:
            return True
        with self._lock:
            if self._changes.poll(0):
                self._ids = self._numbers()
            return mount in self._ids

    def cover(self, fd: int) -> bool:
        """Whether the path of a file that they hold leads elsewhere: something is mounted over it,
        or over a folder on the way. No file system is asked."""
        path = os.fsencode(path_of(fd))
        with self._lock:
            listed = self._listed()
        return bool(path) and mount_at(path, self._root_mount, listed) != mount_of(fd)

    def _numbers(self) -> frozenset[int]:
        return frozenset(each.number for each in self._listed())

    def _listed(self) -> list[Told]:
        os.lseek(self._list_fd, 0, os.SEEK_SET)
        data = b""
        while chunk := os.read(self._list_fd, _CHUNK):
            data += chunk
        return read_mountinfo(data)


def mount_at(path: bytes, root: int, listed: Sequence[Told]) -> int:
    """Which mount a path without links leads to: on the way, each mount goes on in the first that
    lies on it. What is mounted on the root itself leads nobody away from it."""
    nearest: dict[int, tuple[int, int]] = {}  # on each mount: after how much of the path, and which
    for each in listed:
        point = unescaped(each.point)
        if point != b"/" and (path == point or path.startswith(point + b"/")):
            found = len(point), each.number
            nearest[each.parent] = min(found, nearest.get(each.parent, found))
    number = root
    while number in nearest:
        number = nearest[number][1]
    return number
