"""Sockets that a policy keeps, by what they are and not by their names alone: who owns one can give
it another name, and anybody can mount it elsewhere in a namespace of his own."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator

from sigwrap.linux.file_state import Inode, inode_of, kind_of
from sigwrap.policy.judge.file_names import FileNames
from sigwrap.policy.judge.match import is_glob

_LOOKS_EVERY_S = 1.0
# By one glob: at the session's begin, and while somebody waits, and others can make names.
_MOST_NAMES_AT_FIRST, _MOST_NAMES = 200_000, 2000
_NONE: frozenset[str] = frozenset()


class KeptPlaces:
    def __init__(self, globs: Iterable[str]) -> None:
        self._globs = tuple(each for each in globs if each.startswith("/"))
        self._known: dict[Inode, frozenset[str]] = {}
        self._look(_MOST_NAMES_AT_FIRST)

    def names_of(self, inode: Inode) -> frozenset[str]:
        """All that it was called, since the session began, of what the policy keeps."""
        if time.monotonic() - self._looked_s >= _LOOKS_EVERY_S:
            self._look(_MOST_NAMES)
        return self._known.get(inode, _NONE)

    def _look(self, most_names: int) -> None:
        self._looked_s = time.monotonic()
        for glob in self._globs:
            for path in _sockets(glob, most_names):
                self._note(path)

    def _note(self, path: str) -> None:
        try:
            found = inode_of(os.fsencode(path))
        except OSError:
            return
        self._known[found] = self._known.get(found, _NONE) | {path}


def _sockets(glob: str, most_names: int) -> Iterator[str]:
    folders, left = [""], iter(range(most_names))
    *parts, last = glob.split("/")[1:]
    for part in parts:
        folders = [path for folder in folders for path in _named(folder, part, left)]
    for folder in folders:
        for path in _named(folder, last, left):
            try:
                kind, _ = kind_of(os.fsencode(path))
            except OSError:
                continue
            if kind == stat.S_IFSOCK:
                yield path


def _named(folder: str, part: str, left: Iterator[int]) -> Iterator[str]:
    if not is_glob(part):
        yield f"{folder}/{part}"
        return
    pattern = FileNames(part)
    try:
        with os.scandir(folder or "/") as entries:
            for _, entry in zip(left, entries, strict=False):
                if pattern.matches(entry.name):
                    yield f"{folder}/{entry.name}"
    except OSError:
        return
