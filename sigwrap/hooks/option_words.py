"""The options of a program and its operands, as getopt_long(3) tells them apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sigwrap.hooks.starter import Starter
from sigwrap.hooks.words import Word
from sigwrap.policy.judge.match import UNTOLD
from sigwrap.tuples import NamedTuple


class Said(NamedTuple):
    options: tuple[tuple[str, Word | None], ...]
    operands: tuple[Word, ...]
    before: int  # operands before what is run
    doubtful: bool  # which words are options and which aren't
    is_hidden: bool = False  # an option isn't known

    def has(self, names: str) -> bool:
        """One of them, which stand between blanks."""
        return not {name for name, _ in self.options}.isdisjoint(names.split())

    def values_of(self, names: str) -> Iterator[Word]:
        wanted = names.split()
        return (value for name, value in self.options if name in wanted and value is not None)


def said(starter: Starter, words: Sequence[Word]) -> Said:
    """`words`: with the program's own, the first."""
    options: list[tuple[str, Word | None]] = []
    operands: list[Word] = []
    before, behind = starter.operands, starter.options_behind
    if starter.first_operand_first and words[1:] and _is_option(words[1]):
        before = behind = 0
    doubtful, is_hidden, position = False, False, 1
    while position < len(words) and len(operands) <= behind:
        word = words[position]
        position += 1
        if word.text == "--":
            break
        if word.text == "-" and "-" in starter.moves.split():
            options.append(("-", None))
        elif not _is_option(word):
            doubtful = doubtful or word.text.startswith(UNTOLD) or _may_be_several(word)
            operands.append(word)
        elif word.text.startswith("--"):
            name, value, takes_next = _long(word, starter)
            if takes_next:
                value = words[position] if position < len(words) else Word("")
                doubtful = doubtful or _may_be_several(value)
                position += 1
            doubtful = doubtful or not name
            is_hidden = is_hidden or UNTOLD in word.text.partition("=")[0]
            options.append((name or word.text, value))
        else:
            found, takes_next, is_sure = _letters(word, starter)
            if takes_next:
                value = words[position] if position < len(words) else Word("")
                doubtful = doubtful or _may_be_several(value)
                position += 1
                found[-1] = (found[-1][0], value)
            doubtful = doubtful or not is_sure
            is_hidden = is_hidden or (not is_sure and UNTOLD in word.text)
            options += found
    return Said(tuple(options), (*operands, *words[position:]), before, doubtful, is_hidden)


def _is_option(word: Word) -> bool:
    return word.text.startswith("-") and word.text != "-"


def _may_be_several(word: Word) -> bool:
    return word.splits or bool(word.pattern)


def _long(word: Word, starter: Starter) -> tuple[str, Word | None, bool]:
    """Its whole name, of which a beginning is enough; empty where it is none, or one of several."""
    given, has_value, value = word.text[2:].partition("=")
    if starter.long == "*":
        return word.text, None, False
    known = {each.rstrip("=?"): each[-1] for each in starter.long.split()}
    fits = [given] if given in known else [name for name in known if name.startswith(given)]
    if len(fits) != 1:
        return "", Word(value, splits=word.splits), False
    takes_next = known[fits[0]] == "=" and not has_value
    told = Word(value, splits=word.splits) if has_value else None
    return f"--{fits[0]}", told, takes_next


def _letters(word: Word, starter: Starter) -> tuple[list[tuple[str, Word | None]], bool, bool]:
    """Several may be in one word. Whether the last of them takes the next word, and whether all
    are known."""
    found: list[tuple[str, Word | None]] = []
    left, is_sure = word.text[1:], True
    while left:
        letter, left = left[0], left[1:]
        _, is_there, behind = starter.short.partition(letter)
        if letter == UNTOLD:
            return found, False, False
        if not is_there or letter == ":":
            is_sure = False
            continue
        found.append((f"-{letter}", None))
        if not behind.startswith(":"):
            continue
        if left or behind.startswith("::"):
            found[-1] = (found[-1][0], Word(left, splits=word.splits))
            return found, False, is_sure
        return found, True, is_sure
    return found, False, is_sure and not _may_be_several(word)
