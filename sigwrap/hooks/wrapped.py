"""What stands behind `env`, `sudo`, `xargs` and the like, by policy/judge/wrappers.py; and what
that leaves open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sigwrap.bare import re
from sigwrap.hooks.option_words import said
from sigwrap.hooks.shell_tree import RESERVED
from sigwrap.hooks.starter import Starter
from sigwrap.hooks.words import Word
from sigwrap.policy.judge.match import UNTOLD
from sigwrap.policy.judge.wrappers import MAX_WRAPPERS, unwrap
from sigwrap.tuples import NamedTuple

Chain = Sequence[tuple[str, tuple[str, ...]]]
_Options = Mapping[str, tuple[str, tuple[str, ...]]]  # letters, and how long ones begin

_XARGS = Starter(
    short="0a:d:E:e::I:i::L:l::n:opP:rs:tx",
    long="null arg-file= delimiter= eof? replace? max-lines? max-args= open-tty interactive "
    "max-procs= no-run-if-empty max-chars= verbose exit process-slot-var= show-limits help version",
)
_REPLACES = "-I -i --replace"
_MOVES = {"env": ("C", ("--c",)), "sudo": ("DRi", ("--ch", "--lo"))}
_RENAMES = {"env": ("a", ("--a",))}  # `env -a rm busybox` is rm
_CLEARS = {"env": ("iu", ("--i", "--u"))}  # the environment, or some of it
_OPTIONS_OF_TIME = frozenset({"-p", "--"})
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(\[.*\])?\+?=", re.DOTALL)
_ALWAYS_MOVE = frozenset({"chroot"})  # to the new root
_SPLITS = re.compile(r"-[A-Za-z0]*S|--s[a-z-]*=?")  # `env -S`
_MEANT_OTHERWISE = re.compile(r"[\\$#=\v\f]|(^|\s)(-[A-Za-z0]*S|--s)")


def chain_of(argv: Sequence[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """A command and what it wraps, by name, from the outermost."""
    name = basename(argv[0])
    yield name, tuple(argv)
    for wrapped in unwrap(name, argv):
        yield basename(wrapped.argv[0]), wrapped.argv


class Timed(NamedTuple):
    """By bash's keyword: a command as any other, with its assignments."""

    assignments: tuple[Word, ...]
    command: tuple[Word, ...]


def timed(words: tuple[Word, ...]) -> Timed | None:
    """None where `time` is the program, or stands before what is no simple command."""
    left = [*words[1:]]
    while left and left[0].text in _OPTIONS_OF_TIME:
        left.pop(0)
    if left and (left[0].text in RESERVED or left[0].text.startswith("-")):
        return None
    assignments: list[Word] = []
    while left and _ASSIGNMENT.match(left[0].text):
        assignments.append(left.pop(0))
    return Timed(tuple(assignments), tuple(left))


def variable_of(assignment: str) -> str:
    """`A` of `A=1`, `A+=1` and `A[2]=1`."""
    return assignment.partition("=")[0].rstrip("+").partition("[")[0]


def words_of(argv: Sequence[str], words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Of one in the chain of `words`."""
    last = words[-len(argv) :]
    if tuple(word.text for word in last) == tuple(argv):
        return last
    return tuple(Word(text, splits=UNTOLD in text) for text in argv)


def filled(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """Behind `xargs -I {}`, what takes the place of that isn't known."""
    for name, argv in chain_of([word.text for word in words]):
        if name != "xargs":
            continue
        behind = words[-len(argv) :]
        found = said(_XARGS, behind)
        marks = [value.text or "{}" for value in found.values_of(_REPLACES)]
        operands = [_without(word, marks) for word in found.operands]
        return (*words[: len(words) - len(operands)], *operands)
    return words


def _without(word: Word, marks: Sequence[str]) -> Word:
    for mark in marks:
        if mark in word.text:
            word = Word(word.text.replace(mark, UNTOLD))
    return word


def is_wrapped_too_often(chain: Chain) -> bool:
    name, argv = chain[-1]
    return len(chain) > MAX_WRAPPERS and bool(unwrap(name, argv))


def splits_otherwise(chain: Chain) -> bool:
    """`env -S` has a syntax of its own, of which only the plain part is read."""
    last, words = chain[-1]
    if last == "env" and any(map(_SPLITS.match, words)):  # behind another option
        return True
    for name, argv in chain:
        for at, word in enumerate(argv[1:], 1):
            if name != "env" or not word.startswith("-"):
                break
            if _SPLITS.match(word):
                text = _SPLITS.sub("", word, count=1)
                return any(map(_MEANT_OTHERWISE.search, (text, *argv[at + 1 : at + 2])))
    return False


def moves(names: frozenset[str], before: Sequence[str]) -> bool:
    """Whether the command runs in a folder that isn't known."""
    return not _ALWAYS_MOVE.isdisjoint(names) or _has_any(_MOVES, names, before)


def renames(names: frozenset[str], before: Sequence[str]) -> bool:
    return _has_any(_RENAMES, names, before)


def clears(names: frozenset[str], before: Sequence[str]) -> bool:
    return ("env" in names and "-" in before) or _has_any(_CLEARS, names, before)


def _has_any(options: _Options, names: frozenset[str], before: Sequence[str]) -> bool:
    for name in names & options.keys():
        letters, beginnings = options[name]
        for word in before:
            is_long = word.startswith("--")
            if word.startswith(beginnings) if is_long else _has_letter(word, letters):
                return True
    return False


def _has_letter(word: str, letters: str) -> bool:
    return word.startswith("-") and not set(letters).isdisjoint(word)


def basename(path: str) -> str:
    return path.rpartition("/")[2]
