"""Sockets that a policy keeps, by what they are and not by their names alone: who owns one can give
it another name, and anybody can mount it elsewhere in a namespace of his own."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator

from sigwrap.linux.paths import Inode, inode_of, kind_of
from sigwrap.policy.judge.file_names import FileNames
from sigwrap.policy.judge.match import is_glob

_LOOKS_EVERY_S = 1.0
_MOST_NAMES = 1000  # in a folder
_NONE: frozenset[str] = frozenset()


class KeptPlaces:
    def __init__(self, globs: Iterable[str]) -> None:
        self._globs = tuple(each for each in globs if each.startswith("/"))
        self._known: dict[Inode, frozenset[str]] = {}
        self._looked_s = -_LOOKS_EVERY_S
        self.names_of((0, 0))

    def names_of(self, inode: Inode) -> frozenset[str]:
        """All that it was called, since the session began, of what the policy keeps."""
        now_s = time.monotonic()
        if now_s - self._looked_s >= _LOOKS_EVERY_S:
            self._looked_s = now_s
            for glob in self._globs:
                for path in _sockets(glob):
                    self._note(path)
        return self._known.get(inode, _NONE)

    def _note(self, path: str) -> None:
        try:
            found = inode_of(os.fsencode(path))
        except OSError:
            return
        self._known[found] = self._known.get(found, _NONE) | {path}


def _sockets(glob: str) -> Iterator[str]:
    folders = [""]
    *parts, last = glob.split("/")[1:]
    for part in parts:
        folders = [path for folder in folders for path in _named(folder, part)]
    for folder in folders:
        for path in _named(folder, last):
            try:
                kind, _ = kind_of(os.fsencode(path))
            except OSError:
                continue
            if kind == stat.S_IFSOCK:
                yield path


def _named(folder: str, part: str) -> Iterator[str]:
    if not is_glob(part):
        yield f"{folder}/{part}"
        return
    pattern = FileNames(part)
    try:
        with os.scandir(folder or "/") as entries:
            for entry, _ in zip(entries, range(_MOST_NAMES), strict=False):
                if pattern.matches(entry.name):
                    yield f"{folder}/{entry.name}"
    except OSError:
        return
