"""Find the names and links on the disk that file rules are about, and make folders that they want.

Rules name paths, but the kernel enforces them on real files. So a rule about a link is also about
its target, and a read denial of a folder is also about the targets of links in it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.files import BENEATH, FileRules, Parts, parts_of
from sigwrap.policy.judge.globs import Glob, is_glob
from sigwrap.policy.judge.request import Action, Operation
from sigwrap.policy.judge.rules import FileRule

MOST_NAMES = 50_000
_NARROW = 2  # names in a path: a denial of / or /home does not include link targets
_OF_NAMES = (Operation.CREATE, Operation.DELETE)
_OF_THE_SYSTEM = ("/", "/var")  # links to /usr and /run
_MOST_LINKS = 40  # the kernel's limit
_FOR_ITS_OWNER = 0o700
_DEPTH = 3  # levels below a denied folder in which links are followed


class TooManyNames(Exception):
    """The folder of this path, which a rule is about, has too many names."""


class Listing:
    """Lists folders, up to a number of names in all."""

    def __init__(self) -> None:
        self._left = MOST_NAMES

    def names_in(self, folder: str) -> Iterable[tuple[str, bool]] | None:
        """Return the names, and which are folders, without links. Raises TooManyNames."""
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
    """Return the rules with the real places of their paths as well.

    A read denial lists only existing files, because a missing file is no secret. `files` is made of
    the same rules.
    """
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
    """Resolves paths. Most of them share a few folders, which are resolved once."""

    def __init__(self, files: FileRules) -> None:
        self._files = files
        self._known: dict[tuple[str, Follows], str] = {}  # folders; empty for a missing one

    def is_kept(self, link: str) -> bool:
        """Return whether the session cannot change the link.

        Otherwise an earlier session could have made it, to get access to its target in this one.
        """
        folder = os.path.dirname(link)
        if folder in _OF_THE_SYSTEM or not os.access(folder, os.W_OK):
            return True
        names = (self._files.decide(each, link).action for each in _OF_NAMES)
        return all(each is Action.DENY for each in names)

    def of_path(self, path: str, follows: Follows) -> tuple[str, str]:
        """Return the path as written, and its real place."""
        folder, globs = self._told(path, follows)
        return path, "/".join((folder.rstrip("/"), *globs)) or "/"

    def of_secret(self, path: str) -> Iterator[str]:
        """Yield the files that exist, and the targets of links in them."""
        folder, globs = self._told(path, _any_link)
        for each in _matches(folder, globs):
            real = self._resolved(each, _any_link)
            yield from (each, real)
            if real.count("/") >= _NARROW:
                yield from _link_targets(real, _DEPTH)

    def _told(self, path: str, follows: Follows) -> tuple[str, Parts]:
        """Return the real place of the part before the first glob, and the rest."""
        parts = parts_of(path)
        plain = next((at for at, part in enumerate(parts) if is_glob(part)), len(parts))
        return self._resolved(f"/{'/'.join(parts[:plain])}", follows), parts[plain:]

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
    """Resolve a path like realpath, but follow only some links. `known` has none."""
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


def _matches(path: str, globs: Parts) -> Iterator[str]:
    if not globs:
        if os.path.lexists(path):
            yield path
        return
    agrees = Glob(globs[0]).matches
    for each in _entries(path) or ():
        if agrees(each.name):
            yield from _matches(each.path, globs[1:])


def _link_targets(folder: str, depth: int) -> Iterator[str]:
    """Yield the files, but no folders, that are targets of links in the folder."""
    for each in _entries(folder) or ():
        if each.is_symlink():
            real = _real(each.path, _any_link)
            if not os.path.isdir(real):
                yield real
        elif depth and each.is_dir(follow_symlinks=False):
            yield from _link_targets(each.path, depth - 1)


def _entries(folder: str) -> list[os.DirEntry[str]] | None:
    """Return the entries, None if the folder cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return None


def make_missing(engine: Engine) -> list[str]:
    """Make the missing folders of rules with `make_missing`, such as caches, which programs need.
    Only below a folder of this user, and only where the command cannot make them. Return them, each
    after its parent."""
    made: list[str] = []
    for rule in engine.policy.file_rules:
        for path in rule.paths if rule.make_missing else ():
            folder = path.removesuffix(f"/{BENEATH}")
            if not is_glob(folder) and not os.path.lexists(folder):
                made += _make(folder, engine.files)
    return made


def remove_unused(made: list[str]) -> None:
    for folder in reversed(made):
        try:
            os.rmdir(folder)
        except OSError:
            pass  # it was used, or was removed


def _make(folder: str, files: FileRules) -> Iterator[str]:
    missing: list[str] = []
    if not folder.startswith("/"):
        return
    try:
        while not os.path.lexists(folder):
            missing.append(folder)
            folder = os.path.dirname(folder)
        if (
            folder == "/"
            or files.holds_for_all(Operation.CREATE, folder)
            or os.stat(folder).st_uid != os.geteuid()
        ):
            return
        for each in reversed(missing):
            os.mkdir(each, _FOR_ITS_OWNER)
            yield each
    except OSError:
        return  # the command gets the error if it needs the folder
