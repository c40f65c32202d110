"""Globs on paths and names of sockets, without RE2: every start looks for protected sockets."""

from __future__ import annotations

from sigwrap.policy.judge.file_names import FileNames
from sigwrap.policy.judge.match import Glob, to_bytes

_BENEATH = "**"


class SocketNames:
    """Match what `Glob` matches."""

    __slots__ = ("_glob", "_is_beneath", "_parts", "needs_patterns")

    def __init__(self, pattern: str) -> None:
        self._glob = Glob(pattern)
        parts = pattern.split("/")
        self._is_beneath = parts[-1] == _BENEATH
        if self._is_beneath:
            parts.pop()
        self.needs_patterns = "[" in pattern or any(_BENEATH in part for part in parts)
        self._parts = tuple(map(FileNames, parts))

    def matches(self, text: str) -> bool:
        if not text.startswith(self._glob.prefix):
            return False
        if self.needs_patterns:
            return self._glob.matches(text)
        given = to_bytes(text).decode().split("/")
        is_long = len(given) > len(self._parts)
        if is_long != self._is_beneath or len(given) < len(self._parts):
            return False
        return all(part.matches(each) for part, each in zip(self._parts, given, strict=False))
