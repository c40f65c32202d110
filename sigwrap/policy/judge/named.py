"""Programs that rules deny, redirect or need approval for.

These programs are recognized by more than their names.
"""

from __future__ import annotations

from collections.abc import Iterable

from sigwrap.policy.judge.file_names import FileNames
from sigwrap.policy.judge.match import is_glob
from sigwrap.policy.judge.request import Action
from sigwrap.policy.judge.rules import CommandRule

_EVERYTHING = "*"
_LENIENT = frozenset({Action.ALLOW, Action.AUDIT})


class Named:
    """The words of these rules: names, and paths with a slash."""

    def __init__(self, rules: Iterable[CommandRule]) -> None:
        words = {word for rule in rules if rule.decision not in _LENIENT for word in rule.commands}
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
