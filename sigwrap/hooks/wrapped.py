"""The command behind `env`, `sudo`, `xargs` and the like (policy/judge/wrappers.py), and what these
change for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sigwrap.bare import re
from sigwrap.hooks.words import Word
from sigwrap.policy.judge.match import UNTOLD
from sigwrap.policy.judge.wrappers import MAX_WRAPPERS, basename, unwrap

Chain = Sequence[tuple[str, tuple[str, ...]]]

FROM_INPUT = frozenset({"xargs"})  # its command gets more words from standard input
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(\[.*\])?\+?=", re.DOTALL)
_MARK_OF_XARGS = re.compile(r"(?:-[a-zA-Z0-9]*?([Ii])|--r[a-z]*=?)(.*)", re.DOTALL)
# Options of env by which it starts another program, and of others that change where it runs.
_HIDES = re.compile(r"-[A-Za-z0]*[aS]|--[as]")
MOVES = {
    "env": re.compile(r"-[a-zA-Z0]*C|--c"),
    "sudo": re.compile(r"-[a-zA-Z]*[DRi]|--ch|--lo"),
    "chroot": re.compile(""),
}
CLEARS = {"env": re.compile(r"-[a-zA-Z0]*[iu]|--[iu]|-$")}


def chain_of(argv: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Return a command and what it wraps, by name, the outermost first."""
    name = basename(argv[0])
    yield name, tuple(argv)
    for wrapped in unwrap(name, argv):
        yield basename(wrapped.argv[0]), wrapped.argv


def words_of(argv: Sequence[str], words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return the words of one command in the chain of `words`."""
    last = words[-len(argv) :]
    if tuple(word.text for word in last) == tuple(argv):
        return last
    return tuple(Word(text, splits=UNTOLD in text) for text in argv)


def assignments_of(words: Sequence[Word]) -> int:
    """Return how many of the first words are assignments."""
    return next(
        (at for at, word in enumerate(words) if not _ASSIGNMENT.match(word.text)), len(words)
    )


def filled(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Mark what `xargs -I {}` replaces as not known."""
    chain = [*chain_of([word.text for word in words])]
    start = len(words) - len(chain[-1][1])
    if all(name not in FROM_INPUT for name, _ in chain):
        return words
    for at, option in enumerate(words[:start]):
        found = _MARK_OF_XARGS.fullmatch(option.text)
        if found is not None:
            behind = at + 1 if found[2] or found[1] != "I" else at + 2
            mark = found[2] or (words[at + 1].text if behind == at + 2 else "{}")
            told = (
                Word(word.text.replace(mark, UNTOLD)) if mark in word.text else word
                for word in words[behind:]
            )
            words = (*words[:behind], *told)
    return words


def hides_its_program(chain: Chain, before: Sequence[str]) -> bool:
    last, argv = chain[-1]
    is_wrapped_too_often = len(chain) > MAX_WRAPPERS and bool(unwrap(last, argv))
    return (
        is_wrapped_too_often
        or any(UNTOLD in word for word in before)
        or any(
            _HIDES.match(word)
            for name, argv in chain
            if name == "env"
            for word, previous in zip(argv[1:], ("-", *argv[1:]), strict=False)
            if word.startswith("-") and (previous.startswith("-") or argv[1].startswith("-"))
        )
    )


def has_any(options: Mapping[str, re.Pattern[str]], chain: Chain, before: Sequence[str]) -> bool:
    """Return whether a wrapper has one of its options, MOVES or CLEARS."""
    return any(any(map(options[name].match, before)) for name, _ in chain if name in options)
