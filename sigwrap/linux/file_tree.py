"""What is on the disk where file rules part: names in folders, and where links lead.

Rules name paths, and the kernel holds files where they lie. So what a rule calls by a link is its
target as well, and so is what a link leads to that lies in a folder which a rule is about.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from sigwrap.policy.judge.files import FileRules, Parts, parts_of
from sigwrap.policy.judge.globs import Glob, is_glob
from sigwrap.policy.judge.request import Action, Operation
from sigwrap.policy.judge.rules import FileRule

MOST_NAMES = 50_000
_NARROW = 2  # names in a path: whoever denies all of / or /home doesn't mean what links lead to
_OF_NAMES = (Operation.CREATE, Operation.DELETE)
_OF_THE_SYSTEM = ("/", "/var")  # links to /usr and /run
_MOST_LINKS = 40  # as the kernel has it
_DEPTH = 3  # of folders below one that a rule denies, in which links are looked for


class TooManyNames(Exception):
    """Beside what a rule denies."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self.folder = folder


class Listing:
    """Of so many names and no more."""

    def __init__(self) -> None:
        self._left = MOST_NAMES

    def names_in(self, folder: str) -> Iterable[tuple[str, bool]] | None:
        """Links left out: what they lead to lies elsewhere. Raises TooManyNames."""
        entries = _entries(folder)
        if entries is None:
            return None
        found = [
            (each.name, each.is_dir(follow_symlinks=False))
            for each in entries
            if not each.is_symlink()
        ]
        self._left -= len(found)
        if self._left < 0:
            raise TooManyNames(folder)
        return found


def as_they_lie(rules: Sequence[FileRule], files: FileRules) -> list[FileRule]:
    """With where the paths of each rule really are. Of what may not be read, what is there: what
    isn't yet is no secret, and to part a folder for it would cost much. `files` is made of them."""
    places, lying = _Places(files), list[FileRule]()
    for rule in rules:
        denies = rule.decision is Action.DENY
        secret = tuple(each for each in rule.operations if denies and each is Operation.READ)
        others = tuple(each for each in rule.operations if each not in secret)
        if secret:
            paths = dict.fromkeys(chain.from_iterable(map(places.of_secret, rule.paths)))
            lying.append(rule._replace(operations=secret, paths=tuple(paths)))
        if others:
            follows = _any_link if denies else places.is_kept
            found = (places.of_path(path, follows) for path in rule.paths)
            paths = dict.fromkeys(chain.from_iterable(found))
            lying.append(rule._replace(operations=others, paths=tuple(paths)))
    return lying


Follows = Callable[[str], bool]


class _Places:
    """Where paths lead. Most of them are in one of a few folders."""

    def __init__(self, files: FileRules) -> None:
        self._files = files
        self._known: dict[tuple[str, Follows], str] = {}  # folders; empty: there is none

    def is_kept(self, link: str) -> bool:
        """From the tree, which otherwise could have put it there in a session before, to be allowed
        what it leads to in this one."""
        folder = os.path.dirname(link)
        if folder in _OF_THE_SYSTEM or not os.access(folder, os.W_OK):
            return True
        names = (self._files.decide(each, link).action for each in _OF_NAMES)
        return all(each is Action.DENY for each in names)

    def of_path(self, path: str, follows: Follows) -> tuple[str, str]:
        """Its name, and where it lies."""
        folder, globs = self._told(path, follows)
        return path, "/".join((folder.rstrip("/"), *globs)) or "/"

    def of_secret(self, path: str) -> Iterator[str]:
        """Those that are there, and where links in them lead."""
        folder, globs = self._told(path, _any_link)
        for each in _there(folder, globs):
            real = self._resolved(each, _any_link)
            yield from (each, real)
            if real.count("/") >= _NARROW:
                yield from _files_led_to(real, _DEPTH)

    def _told(self, path: str, follows: Follows) -> tuple[str, Parts]:
        """Of a path, what comes before its first glob, as it really is; and the rest."""
        parts = parts_of(path)
        told = next((at for at, part in enumerate(parts) if is_glob(part)), len(parts))
        return self._resolved(f"/{'/'.join(parts[:told])}", follows), parts[told:]

    def _resolved(self, path: str, follows: Follows) -> str:
        folder, _, name = path.rpartition("/")
        key = folder, follows
        real = self._known.get(key)
        if real is None:
            real = _real(folder, follows)
            self._known[key] = real = real if os.path.isdir(real) else ""
        return _real(f"{real.rstrip('/')}/{name}", follows, known=real) if real else path


def _any_link(_link: str) -> bool:
    return True


def _real(path: str, follows: Follows, *, known: str = "/") -> str:
    """As realpath has it, but for links that aren't to be followed. In `known` there are none."""
    real, links = known, 0
    waiting = list(reversed(path[len(known) :].split("/")))
    while waiting:
        name = waiting.pop()
        if name in ("", "."):
            continue
        if name == "..":
            real = os.path.dirname(real)
            continue
        here = f"{real.rstrip('/')}/{name}"
        try:
            target = os.readlink(here)
        except OSError:
            real = here
            continue
        links += 1
        if links > _MOST_LINKS or not follows(here):
            return "/".join((here, *reversed(waiting)))
        if target.startswith("/"):
            real = "/"
        waiting += reversed(target.split("/"))
    return real


def _there(path: str, globs: Parts) -> Iterator[str]:
    if not globs:
        if os.path.lexists(path):
            yield path
        return
    agrees = Glob(globs[0]).matches
    for each in _entries(path) or ():
        if agrees(each.name):
            yield from _there(each.path, globs[1:])


def _files_led_to(folder: str, depth: int) -> Iterator[str]:
    """By the links in it. A folder that one leads to has a life of its own."""
    for each in _entries(folder) or ():
        if each.is_symlink():
            real = _real(each.path, _any_link)
            if not os.path.isdir(real):
                yield real
        elif depth and each.is_dir(follow_symlinks=False):
            yield from _files_led_to(each.path, depth - 1)


def _entries(folder: str) -> list[os.DirEntry[str]] | None:
    """None where nobody can tell."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return None
