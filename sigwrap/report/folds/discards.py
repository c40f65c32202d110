"""Commands that may have discarded uncommitted changes, found by their words alone."""

from __future__ import annotations

from collections.abc import Sequence

from sigwrap.escape import shell_words, shortened
from sigwrap.events import Event, text, texts
from sigwrap.policy.judge.subcommand import subcommand
from sigwrap.policy.presets import as_meant

MAY_HAVE_DISCARDED = "may have discarded uncommitted changes"
_CHARACTERS = 200
# (program, subcommand) -> words of which one discards changes; none listed: it always does.
_DISCARDS: dict[tuple[str, str], frozenset[str]] = {
    ("git", "reset"): frozenset({"--hard", "--merge"}),
    ("git", "clean"): frozenset({"-f", "--force"}),
    ("git", "checkout"): frozenset({"--", ".", "-f", "--force"}),
    ("git", "switch"): frozenset({"-f", "--force", "--discard-changes"}),
    ("git", "restore"): frozenset(),
    ("hg", "revert"): frozenset(),
    ("hg", "purge"): frozenset(),
    ("hg", "update"): frozenset({"-C", "--clean"}),
    ("svn", "revert"): frozenset(),
}
_PROGRAMS = frozenset(program for program, _ in _DISCARDS)
# With one of these words, the working tree stays as it is.
_KEEPS = {
    ("git", "clean"): frozenset({"-n", "--dry-run"}),
    ("git", "restore"): frozenset({"-S", "--staged"}),
}


def may_discard_changes(argv: Sequence[str]) -> bool:
    if not argv or (program := argv[0].rpartition("/")[2]) not in _PROGRAMS:
        return False
    name = subcommand(program, list(argv))
    if (discards := _DISCARDS.get((program, name))) is None:
        return False
    words = set(_words(argv[list(argv).index(name) + 1 :]))
    if words & _KEEPS.get((program, name), frozenset()) and not words & {"-W", "--worktree"}:
        return False
    return not discards or bool(words & discards)


def _words(rest: Sequence[str]) -> list[str]:
    """Return the words with short options apart: -fdx is -f, -d and -x."""
    found: list[str] = []
    for word in rest:
        is_short = word.startswith("-") and not word.startswith("--") and len(word) > 1
        found += [f"-{letter}" for letter in word[1:]] if is_short else [word]
    return found


def discard_text(event: Event) -> str:
    words = as_meant(texts(event.payload.get("argv")) or [text(event.payload.get("path"))])
    line = shortened(shell_words(words), _CHARACTERS)
    return f"{line} {MAY_HAVE_DISCARDED}"


def discard_line(event: Event) -> str:
    return f"look  {discard_text(event)} ({event.pid}, event {event.seq})"
