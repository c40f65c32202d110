"""Sockets that a policy keeps, by what they are and not by their names alone: who owns one can give
it another name, and anybody can mount it elsewhere in a namespace of his own."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator

from sigwrap.linux.file_state import Born, born_at, kind_of
from sigwrap.policy.judge.globs import Glob, is_glob

_LOOKS_EVERY_S = 1.0
# By one glob: at the session's begin, and while somebody waits, and others can make names.
_MOST_NAMES_AT_FIRST, _MOST_NAMES = 200_000, 2000
_MOST_LATER = 10_000
"""Sockets that came after the begin: a process can make any number of names."""
_NONE: dict[str, str] = {}


class KeptPlaces:
    def __init__(self, globs: Iterable[str]) -> None:
        self._globs = tuple(each for each in globs if each.startswith("/"))
        # By a glob, one of the names that it has for the socket: all of them mean the same rules.
        self._at_first: dict[Born, dict[str, str]] = {}
        self._later: dict[Born, dict[str, str]] = {}  # whoever was not seen for longest, first
        for glob, path, file in self._look(_MOST_NAMES_AT_FIRST):
            self._at_first.setdefault(file, {}).setdefault(glob, path)

    def names_of(self, file: Born) -> frozenset[str]:
        """What it was called, since the session began, of what the policy keeps."""
        if time.monotonic() - self._looked_s >= _LOOKS_EVERY_S:
            for glob, path, found in self._look(_MOST_NAMES):
                self._note(glob, path, found)
        names = self._at_first.get(file) or self._later.get(file, _NONE)
        return frozenset(names.values())

    def _look(self, most_names: int) -> Iterator[tuple[str, str, Born]]:
        self._looked_s = time.monotonic()
        for glob in self._globs:
            for path in _sockets(glob, most_names):
                try:
                    yield glob, path, born_at(os.fsencode(path))
                except OSError:
                    continue

    def _note(self, glob: str, path: str, file: Born) -> None:
        names = self._at_first.get(file)
        if names is None:
            names = self._later[file] = self._later.pop(file, {})
            if len(self._later) > _MOST_LATER:
                del self._later[next(iter(self._later))]
        names.setdefault(glob, path)


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
    pattern = Glob(part)
    try:
        with os.scandir(folder or "/") as entries:
            for _, entry in zip(left, entries, strict=False):
                if pattern.matches(entry.name):
                    yield f"{folder}/{entry.name}"
    except OSError:
        return
