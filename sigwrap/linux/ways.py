"""Where paths led before COMMAND ran, and whether they still do.

Whoever may rename a folder on the way can put a link there that leads into a file system of his
own, and that lets us wait. So each part of a way is noted with its mount, or with the text of its
link. Later the way is gone part by part: no link is followed but those that were there, and nothing
is looked up on a mount that wasn't.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator

from sigwrap.linux.file_state import mount_of

_PART_FLAGS = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER_FLAGS = _PART_FLAGS | os.O_DIRECTORY
_MAX_LINKS = 40


class Ways:
    def __init__(self) -> None:
        self._noted: dict[str, int | str] = {}  # by its own path: a mount, or a link's text
        self._look("/")

    def note(self, path: str) -> str:
        """Where it leads, without a link. OSError where it leads nowhere."""
        here, links = "/", 0
        parts = _parts(path)
        while parts:
            part = parts.pop()
            if part == "..":
                here = os.path.dirname(here)
                continue
            at = os.path.join(here, part)
            found = self._look(at)
            if not isinstance(found, str):
                here = at
                continue
            links += 1
            if links > _MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            parts += _parts(found)
            here = "/" if found.startswith("/") else here
        return here

    def link(self, path: str) -> str | None:
        """What was in the link that a noted path ends in; None where it ended in none."""
        above, name = os.path.split(path)
        noted = self._noted[os.path.join(self.note(above), name)]
        return noted if isinstance(noted, str) else None

    def _look(self, at: str) -> int | str:
        if at not in self._noted:
            fd = os.open(at, _PART_FLAGS)
            try:
                is_link = stat.S_ISLNK(os.fstat(fd).st_mode)
                self._noted[at] = os.readlink("", dir_fd=fd) if is_link else mount_of(fd)
            finally:
                os.close(fd)
        return self._noted[at]

    def open(self, path: str, *, is_folder: bool = True) -> int:
        """An O_PATH descriptor of what a noted path leads to; OSError where the way is another."""
        here, fd = "/", self.root()
        parts = _parts(path)
        try:
            while parts:
                part = parts.pop()
                if part == "..":
                    here = os.path.dirname(here)
                    above = os.open("..", _FOLDER_FLAGS, dir_fd=fd)
                    os.close(fd)
                    fd = above
                    continue
                at = os.path.join(here, part)
                text = self._noted.get(at)
                if not isinstance(text, str):
                    below = self.step(fd, at, is_folder=is_folder or bool(parts))
                    os.close(fd)
                    here, fd = at, below
                    continue
                if os.readlink(part, dir_fd=fd) != text:
                    raise OSError(errno.ENOTDIR, f"the link {at} changed")
                parts += _parts(text)
                if text.startswith("/"):
                    root = self.root()
                    os.close(fd)
                    here, fd = "/", root
        except BaseException:
            os.close(fd)
            raise
        return fd

    def opened(self, paths: Iterable[str]) -> Iterator[tuple[str, int]]:
        """The same of each, for as long as it is the current one; -1 where the way is another. What
        a way has in common with the one before is gone once; no more is held than one way's parts,
        as descriptors may be few."""
        folders: dict[str, int] = {}
        try:
            for path in paths:
                above = os.path.dirname(path)
                for left in [each for each in folders if not _is_on(each, above)]:
                    os.close(folders.pop(left))
                fd = -1
                try:
                    if above not in folders and self._has_no_link(path):
                        folders[above] = self._opened_below(folders, above)
                    if above in folders and not isinstance(self._noted.get(path), str):
                        fd = self.step(folders[above], path, is_folder=False)
                    else:
                        fd = self.open(path, is_folder=False)
                except OSError:
                    yield path, -1
                    continue
                try:
                    yield path, fd
                finally:
                    os.close(fd)
        finally:
            for each in folders.values():
                os.close(each)

    def _has_no_link(self, path: str) -> bool:
        parts = path.split("/")[1:]
        ways = ("/" + "/".join(parts[: depth + 1]) for depth in range(len(parts)))
        is_plain = path.startswith("/") and not {"", ".", ".."}.intersection(parts)
        return is_plain and all(isinstance(self._noted.get(each), int) for each in ways)

    def _opened_below(self, folders: dict[str, int], path: str) -> int:
        """Of a folder to which no link leads."""
        if path == "/":
            return self.root()
        above = os.path.dirname(path)
        if above not in folders:
            folders[above] = self._opened_below(folders, above)
        return self.step(folders[above], path)

    def root(self) -> int:
        return os.open("/", _FOLDER_FLAGS)

    def step(self, folder: int, path: str, *, is_folder: bool = True) -> int:
        """To the last part of `path`, which lies in `folder`: no link, and on the noted mount, or
        on that of its folder."""
        flags = _FOLDER_FLAGS if is_folder else _PART_FLAGS
        found = os.open(os.path.basename(path), flags, dir_fd=folder)
        try:
            noted = self._noted.get(path)
            if mount_of(found) != (mount_of(folder) if noted is None else noted):
                raise OSError(errno.EXDEV, f"another file system is mounted on {path}")
        except BaseException:
            os.close(found)
            raise
        return found


def _is_on(folder: str, way: str) -> bool:
    return folder in ("/", way) or way.startswith(folder + "/")


def _parts(path: str) -> list[str]:
    """Last first."""
    return [part for part in reversed(path.split("/")) if part not in ("", ".")]
