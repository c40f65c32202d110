"""A glob on names of files, matched without RE2: every start looks through all folders of PATH.

A name is short, so it may take as many steps as it has characters times those of the glob.
"""

from __future__ import annotations

from collections.abc import Callable

from sigwrap.policy.judge.match import Glob

MAX_CHARACTERS = 255  # of a name on Linux, in bytes

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
