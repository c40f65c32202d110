"""Find where an exec would run, and whether a file lies where sigwrap's own paths are valid.

A caller can have its own mounts (a mount namespace, or a directory opened in one) and its own root.
There `/usr/bin/git` can be any program: neither the path nor the libraries that it loads are known.
A mount's id is unique while the mount exists, and an open descriptor keeps its file's mount.
"""

from __future__ import annotations

import _thread
import os
import select
from collections.abc import Sequence

from sigwrap.linux import proc_files
from sigwrap.linux.file_state import Place, mount_of, place_of, place_of_descriptor
from sigwrap.linux.mounts import Told, read_mountinfo, unescaped
from sigwrap.linux.paths import Caller, path_of
from sigwrap.mediate.effects import NOWHERE, Whereabouts

_CHUNK = 1 << 16


class Mounts:
    """The mounts of sigwrap's own mount namespace below its root."""

    def __init__(self, our_root: Place) -> None:
        self._root_mount = our_root[3]  # not listed if the root is a directory within a mount
        self._list_fd = proc_files.open_file("/proc/self/mountinfo")
        self._changes = select.poll()
        self._changes.register(self._list_fd, select.POLLPRI)
        self._lock = _thread.allocate_lock()  # a worker may look as well
        self._ids = self._numbers()

    def hold(self, fd: int) -> bool:
        """Return whether an open file lies on one of them.

        The kernel reuses ids, but a change of the list before the file was opened is noticed here.
        """
        mount = mount_of(fd)
        if mount == self._root_mount:
            return True
        with self._lock:
            if self._changes.poll(0):
                self._ids = self._numbers()
            return mount in self._ids

    def cover(self, fd: int) -> bool:
        """Return whether another mount covers the path of a file that lies on one of them.

        This asks no file system.
        """
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
    """Return the mount at the end of a path without links.

    On the way, each mount continues in the first one on it. A mount on the root itself does not
    count, because processes stay below it.
    """
    nearest: dict[int, tuple[int, int]] = {}  # by mount: path length so far, mount there
    for each in listed:
        point = unescaped(each.point)
        if point != b"/" and (path == point or path.startswith(point + b"/")):
            found = len(point), each.number
            nearest[each.parent] = min(found, nearest.get(each.parent, found))
    number = root
    while number in nearest:
        number = nearest[number][1]
    return number


class Where:
    """The root and directory of a caller, which the exec stop compares if a decision used them."""

    __slots__ = ("_caller", "_folder", "_mounts")

    def __init__(self, caller: Caller, mounts: Mounts) -> None:
        self._caller = caller
        self._mounts = mounts
        self._folder: Place | None = None

    def read(self) -> Whereabouts:
        try:
            folder = self._caller.open_folder()
        except OSError:  # the caller is ending, or may not be read any more
            return NOWHERE
        try:
            self._folder = place_of_descriptor(folder)
            are_ours = self._caller.shares_our_root and self._mounts.hold(folder)
            return Whereabouts(
                path_of(folder),
                f"{self._caller.root} {self._folder}",
                are_ours,
                is_covered=are_ours and self._mounts.cover(folder),
            )
        finally:
            os.close(folder)

    def holds(self, pid: int) -> bool:
        """Return at the exec stop whether the directory is the same."""
        return self._folder is None or place_of(b"/proc/%d/cwd" % pid) == self._folder
