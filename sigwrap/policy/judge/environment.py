"""Names of the variables that the command does not get. Values are not used here."""

from __future__ import annotations

from collections.abc import Iterable

from sigwrap.bare import NamedTuple
from sigwrap.policy.judge.globs import Glob
from sigwrap.policy.judge.rules import EnvPolicy

KILLSWITCH_URL = "SIGWRAP_KILLSWITCH_URL"
# With the key, a process could rewrite the log; the URL may hold a token.
ALWAYS_REMOVED = frozenset({"SIGWRAP_KEY", KILLSWITCH_URL})


class Removed(NamedTuple):
    name: str
    pattern: str  # empty: removed under every policy


class Kept(NamedTuple):
    """A variable that `pattern` would remove and `keep` keeps."""

    name: str
    pattern: str
    keep: str


class JudgedNames(NamedTuple):
    """Judged names, sorted; all other variables stay."""

    removed: tuple[Removed, ...]
    kept: tuple[Kept, ...]


def judge_names(policy: EnvPolicy, names: Iterable[str]) -> JudgedNames:
    remove, keep = _globs(policy.remove), _globs(policy.keep)
    removed: list[Removed] = []
    kept: list[Kept] = []
    for name in sorted(names):
        if name in ALWAYS_REMOVED:
            removed.append(Removed(name, ""))
        elif pattern := _first(remove, name):
            if keeps := _first(keep, name):
                kept.append(Kept(name, pattern, keeps))
            else:
                removed.append(Removed(name, pattern))
    return JudgedNames(tuple(removed), tuple(kept))


def _globs(patterns: Iterable[str]) -> dict[str, Glob]:
    """Compile patterns. In a name, a slash is no place for a star to stop: it counts as `_`."""
    return {each: Glob(each.replace("/", "_")) for each in patterns}


def _first(globs: dict[str, Glob], name: str) -> str:
    """Return the first pattern that matches the name, or ""."""
    plain = name.replace("/", "_")
    return next((pattern for pattern, glob in globs.items() if glob.matches(plain)), "")
