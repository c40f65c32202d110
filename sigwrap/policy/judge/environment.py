"""Which variables COMMAND is not given. Names only: no value comes here."""

from __future__ import annotations

from collections.abc import Iterable

from sigwrap.policy.judge.match import NameGlob
from sigwrap.policy.judge.rules import EnvPolicy
from sigwrap.tuples import NamedTuple

KILLSWITCH_URL = "SIGWRAP_KILLSWITCH_URL"
# Whoever has the key can write the log anew; the URL may hold a token.
ALWAYS_REMOVED = frozenset({"SIGWRAP_KEY", KILLSWITCH_URL})


class Removed(NamedTuple):
    name: str
    pattern: str  # empty: by no policy, always


class Kept(NamedTuple):
    """One that `pattern` would remove, and that stays by `keep`."""

    name: str
    pattern: str
    keep: str


class JudgedNames(NamedTuple):
    """Sorted by name; all others stay."""

    removed: tuple[Removed, ...]
    kept: tuple[Kept, ...]


def judge_names(policy: EnvPolicy, names: Iterable[str]) -> JudgedNames:
    remove, keep = _Patterns(policy.remove), _Patterns(policy.keep)
    removed: list[Removed] = []
    kept: list[Kept] = []
    for name in sorted(names):
        if name in ALWAYS_REMOVED:
            removed.append(Removed(name, ""))
        elif pattern := remove.first(name):
            if keeps := keep.first(name):
                kept.append(Kept(name, pattern, keeps))
            else:
                removed.append(Removed(name, pattern))
    return JudgedNames(tuple(removed), tuple(kept))


class _Patterns:
    def __init__(self, patterns: tuple[str, ...]) -> None:
        self._globs = tuple(map(NameGlob, patterns))

    def first(self, name: str) -> str:
        """That matches the whole name; empty where none does."""
        return next((glob.pattern for glob in self._globs if glob.matches(name)), "")
