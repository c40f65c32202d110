"""Names in rules, matched without RE2: every start looks through all folders of PATH.

A name is short, so a match may take as many steps as it has characters times those of the glob.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sigwrap.policy.judge.match import Glob, is_glob, to_bytes
from sigwrap.policy.judge.request import LENIENT
from sigwrap.policy.judge.rules import CommandRule

MAX_CHARACTERS = 255  # of a name on Linux, in bytes

_BENEATH = "**"
_EVERYTHING = "*"
_One = Callable[[str], bool]


class FileNames:
    """Match the names that `Glob` matches; a name has no slash."""

    __slots__ = ("_glob", "_parts", "prefix")

    def __init__(self, pattern: str) -> None:
        self._glob = Glob(pattern)
        self.prefix = self._glob.prefix
        self._parts = _parts(pattern[len(self.prefix) :])

    def matches(self, name: str) -> bool:
        if not name.startswith(self.prefix):
            return False
        if self._parts is None or len(name) > MAX_CHARACTERS or not _is_text(name):
            return self._glob.matches(name)
        return _match(self._parts, name[len(self.prefix) :])


class SocketNames:
    """Match what `Glob` matches."""

    __slots__ = ("_glob", "_is_beneath", "_names", "_parts", "needs_patterns")

    def __init__(self, pattern: str) -> None:
        self._glob = Glob(pattern)
        parts = pattern.split("/")
        self._is_beneath = parts[-1] == _BENEATH
        if self._is_beneath:
            parts.pop()
        self.needs_patterns = "[" in pattern or any(_BENEATH in part for part in parts)
        self._parts = parts
        self._names: list[FileNames] | None = None  # most are never needed

    def matches(self, text: str) -> bool:
        if not text.startswith(self._glob.prefix):
            return False
        if self.needs_patterns:
            return self._glob.matches(text)
        given = to_bytes(text).decode().split("/")
        is_long = len(given) > len(self._parts)
        if is_long != self._is_beneath or len(given) < len(self._parts):
            return False
        if self._names is None:
            self._names = list(map(FileNames, self._parts))
        return all(name.matches(each) for name, each in zip(self._names, given, strict=False))


class Named:
    """Programs that rules deny, redirect or need approval for: names, and paths with a slash."""

    def __init__(self, rules: Iterable[CommandRule]) -> None:
        words = {word for rule in rules if rule.decision not in LENIENT for word in rule.commands}
        words.discard(_EVERYTHING)
        self.names = frozenset(word for word in words if "/" not in word and not is_glob(word))
        self.paths = frozenset(word for word in words if "/" in word and not is_glob(word))
        self._globs = tuple(FileNames(word) for word in words if "/" not in word and is_glob(word))
        self._prefixes = tuple(glob.prefix for glob in self._globs)

    def among(self, names: Iterable[str]) -> list[str]:
        prefixes = self._prefixes  # nearly no name of a folder begins as any of them does
        return [
            name
            for name in names
            if name in self.names
            or (name.startswith(prefixes) and any(glob.matches(name) for glob in self._globs))
        ]


def _parts(pattern: str) -> list[_One | None] | None:
    """Return a test for each character, and None for `*`; None if only RE2 can match it."""
    parts: list[_One | None] = []
    position = 0
    while position < len(pattern):
        character = pattern[position]
        end = pattern.find("]", position + 2 + pattern.startswith("[!", position))
        if character == "*":
            parts.append(None)
        elif character == "?":
            parts.append(lambda each: each != "/")
        elif character == "[" and end > 0:
            one = _set(pattern[position + 1 : end])
            if one is None:
                return None
            parts.append(one)
            position = end
        elif character == "[" and "]" in pattern[position:]:
            return None
        else:
            parts.append(character.__eq__)
        position += 1
    return parts


def _set(members: str) -> _One | None:
    negated, members = members.startswith("!"), members.removeprefix("!")
    if not members.isascii() or not members.isprintable() or any(c in "\\[]^:" for c in members):
        return None
    singles, ranges = set(), []
    while members:
        first, rest = members[0], members[1:]
        if len(rest) > 1 and rest[0] == "-":
            ranges.append((first, rest[1]))
            members = rest[2:]
        else:
            singles.add(first)
            members = rest

    def one(each: str) -> bool:
        is_in = each in singles or any(low <= each <= high for low, high in ranges)
        return is_in != negated

    return one


def _match(parts: list[_One | None], text: str) -> bool:
    """Match with backtracking to the last star only, which is enough."""
    part = position = 0
    star, begun = -1, 0
    while position < len(text):
        one = parts[part] if part < len(parts) else _nothing
        if one is None:
            star, begun = part, position
            part += 1
        elif one(text[position]):
            part += 1
            position += 1
        elif star >= 0:
            begun += 1
            part, position = star + 1, begun
        else:
            return False
    return all(each is None for each in parts[part:])


def _nothing(_: str) -> bool:
    return False


def _is_text(name: str) -> bool:
    return "/" not in name and not any("\ud800" <= each <= "\udfff" for each in name)
