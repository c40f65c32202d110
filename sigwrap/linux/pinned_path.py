"""Open a path later exactly as it was when it was pinned.

A process that may rename a directory on the path can put a link or a mount there, and lead sigwrap
into a file system that never answers. So a later open follows no link, and enters only mounts that
were on the path before.
"""

from __future__ import annotations

import errno
import os

from sigwrap.bare import NamedTuple
from sigwrap.linux.file_state import known_state_in, mount_of
from sigwrap.linux.paths import AT_FDCWD, OTHER_MOUNT, open_on_one_mount

_FLAGS = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


class _Segment(NamedTuple):
    """A part of the path that is on one mount."""

    mount_point: str  # its name in the segment before
    mount: int
    rest: str


Known = dict[str, tuple[_Segment, ...]]


class PinnedPath:
    def __init__(self, path: str, known: Known | None = None) -> None:
        """Pin an absolute path without links; its last parts may be missing or unreadable.

        `known` caches directories for other paths that are pinned now.
        """
        self.path = path
        self._segments = _segments(path.rstrip("/"), {} if known is None else known)

    def open(self, flags: int = 0) -> int:
        """Return an O_PATH descriptor; raise OSError if a link or another mount is on the path."""
        fd = os.open("/", _FLAGS)
        try:
            for segment in self._segments:
                if segment.mount_point:
                    fd = _replaced(fd, os.open(segment.mount_point, _FLAGS, dir_fd=fd))
                if mount_of(fd) != segment.mount:
                    raise OSError(errno.EXDEV, OTHER_MOUNT)
                if segment.rest:
                    fd = _replaced(fd, open_on_one_mount(fd, segment.rest, flags))
        except BaseException:
            os.close(fd)
            raise
        return fd


def _replaced(old: int, new: int) -> int:
    os.close(old)
    return new


def _segments(path: str, known: Known) -> tuple[_Segment, ...]:
    found = known.get(path)
    if found is not None:
        return found
    try:
        mount = known_state_in(AT_FDCWD, os.fsencode(path or "/")).mount
    except OSError:
        mount = 0  # if it is made later, it must be on the mount of its directory
    if not path:
        found = (_Segment("", mount, ""),)
    else:
        above, _, name = path.rpartition("/")
        before = _segments(above, known)
        last = before[-1]
        if mount in (0, last.mount):
            rest = f"{last.rest}/{name}" if last.rest else name
            found = (*before[:-1], _Segment(last.mount_point, last.mount, rest))
        else:
            found = (*before, _Segment(name, mount, ""))
    known[path] = found
    return found
