"""What a program of the table in hooks/starters.py runs, read from its words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from sigwrap.bare import re
from sigwrap.escape import shell_words
from sigwrap.hooks.calls import address
from sigwrap.hooks.git_settings import set_by_git
from sigwrap.hooks.option_words import Said, said
from sigwrap.hooks.shells import SHELLS, is_descriptor
from sigwrap.hooks.starter import Starter, Then
from sigwrap.hooks.starters import STARTERS
from sigwrap.hooks.words import NOT_KNOWN, Word
from sigwrap.hooks.wrapped import basename
from sigwrap.policy.judge.match import UNTOLD
from sigwrap.policy.judge.network import packed_address
from sigwrap.tuples import NamedTuple

WHICH_PROGRAM = "the program that it runs is not known in advance"

_WHAT_IT_RUNS = "the command that it runs is not known in advance"
NOT_READ = "sigwrap cannot tell what it runs"
_STANDARD_INPUT = "the standard input of its shell is not known"
_WHICH_MACHINE = "the machine that it runs on is not known in advance"
_MORE_WORDS = ' "$@"'
_A_FILE = " ./file"
_A_MACHINE = " machine command"
_SSH = re.compile(r"(\S*/)?ssh(\s|$)")
_VARIABLE_OF_MAKE = re.compile(r"\s*([^\s=:]+?)\s*((?::{0,3}|[?+!])=)\s*(.*)", re.DOTALL)
_FUNCTION_OF_MAKE = re.compile(r"\$[({]\s*[a-z-]+\s")  # `$(call shell,a)`, too
COMPILER = re.compile(r"CC|CXX|CPP|AS|AR|LD|(COMPILE|LINK|PREPROCESS)\..*")  # of make's rules
ENDS_A_COMMAND = re.compile(r"[;&|`#]")
_MEANT_OTHERWISE = frozenset({UNTOLD, "$", '"', "'", "\\"})  # by make, now so and now so
_ACTIONS_OF_FIND = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_LISTS_OF_ARGUMENTS = (":::", "::::", ":::+", "::::+")  # parallel's
_THIS_MACHINE = frozenset({"localhost", "ip6-localhost", "ip6-loopback"})
_LOOPBACKS = frozenset({bytes(4), bytes(16), bytes(15) + b"\x01"})  # all zeroes lead here too


class Started(NamedTuple):
    """One of them, or why it isn't known."""

    words: tuple[Word, ...] = ()  # of a program
    line: str = ""  # of a shell
    unknown: str = ""
    moved: bool = False  # in a folder that isn't known
    assignments: tuple[str, ...] = ()  # of variables that are set for it


def started(name: str, words: Sequence[Word]) -> Iterator[Started]:
    """`name`: of the program, which is the first word."""
    if name == "find":
        yield from _of_find(words)
    starter = STARTERS.get(name)
    if starter is None:
        return
    found = said(starter, words)
    moved = starter.moves == "*" or found.has(starter.moves)
    assignments = tuple(value.text for value in found.values_of(starter.assigns))
    for each in _told(name, starter, found, words):
        yield each._replace(moved=moved or each.moved, assignments=assignments + each.assignments)


def _told(name: str, starter: Starter, found: Said, words: Sequence[Word]) -> Iterator[Started]:
    if starter.on_a_host and found.operands and UNTOLD in found.operands[0].text:
        yield Started(unknown=_WHICH_MACHINE)
    elif found.doubtful and starter.then is not Then.NOTHING:
        yield Started(unknown=WHICH_PROGRAM)
    may_run = starter.lines or starter.unread or starter.piped
    reads_no_file = any(map(is_no_file, found.values_of(starter.reads)))
    if (found.is_hidden and may_run) or reads_no_file or _has_unread(starter, found):
        yield Started(unknown=NOT_READ)
    for value in found.values_of(starter.piped):
        if value.text.startswith(("|", "!", UNTOLD)):
            yield _line(value.text[1:] if value.known else value.text)
    lines = [*found.values_of(starter.lines)]
    for value in lines:
        if value.text:
            yield line_with_more(value.text) if starter.fed else _line(value.text)
    for value in found.values_of(starter.settings):
        yield from _of_setting(value, found, words)
    for key, value in pairwise(found.operands) if starter.sets_git else ():
        told = set_by_git(f"{key.text}={value.text}")
        if told.unknown:
            yield Started(unknown=NOT_READ)
        if told.line:
            with_words = line_with_more if told.alias else line_with_operand
            yield with_words(told.line)._replace(moved=True)
        if told.words:
            yield Started(words=tuple(map(Word, ("git", *told.words))), moved=True)
    if starter.sets_shell:
        for word in found.operands:
            yield from _set_for_make(word.text)
    is_elsewhere = (
        starter.on_a_host and bool(found.operands) and not _is_this_machine(found.operands[0].text)
    )
    if not (lines or found.has(starter.nothing) or is_elsewhere):
        yield from _of_operands(name, starter, found)


def _has_unread(starter: Starter, found: Said) -> bool:
    if starter.unread == "*" or found.has(starter.unread):
        return True
    beginnings = tuple(starter.unread_values.split())
    return bool(beginnings) and any(
        value.text.casefold().lstrip(' \t="').startswith((UNTOLD, *beginnings))
        for _, value in found.options
        if value is not None
    )


def is_no_file(name: Word) -> bool:
    return name.text == "-" or not name.known or is_descriptor(name.text)


def _of_operands(name: str, starter: Starter, found: Said) -> Iterator[Started]:
    then = Then.WORDS if found.has(starter.words) else starter.then
    rest = found.operands[found.before :] if then is starter.then else found.operands
    if then is Then.NOTHING:
        return
    if then is Then.SHELL or (not rest and starter.shell):
        yield Started(unknown=_STANDARD_INPUT)
    elif not rest:
        return
    elif then is Then.SUBCOMMAND:
        if UNTOLD in rest[0].text:
            yield Started(unknown=WHICH_PROGRAM)
        else:
            yield from started(f"{name} {rest[0].text}", rest)
    elif then is Then.SAME:
        yield Started(words=(Word(name.partition(" ")[0]), *rest))
    elif then is Then.ONE_WORD:
        yield _line(rest[0].text)
    elif then is Then.LINE_AND_ARGUMENTS:
        yield _line_and_arguments(rest, fed=starter.fed)
    elif then is Then.LINE:
        yield from _joined(rest)
    elif rest[0].text in starter.lines.split():
        if rest[1:]:
            yield _line_and_arguments(rest[1:], fed=False)
    else:
        yield Started(words=tuple(rest))


def _set_for_make(word: str) -> Iterator[Started]:
    """`SHELL=…` gets each line of a recipe; one that is a shell by its name alone is as good as
    none. `X!=…` is a line that make has a shell run."""
    found = _VARIABLE_OF_MAKE.fullmatch(word)
    name, operator, value = found.groups() if found else ("", "", "")
    shell = value.split()
    is_unknown = word.startswith(UNTOLD) or UNTOLD in name
    is_put_into_lines = bool(ENDS_A_COMMAND.search(value))
    if is_unknown or is_put_into_lines or name == ".SHELLFLAGS" or _FUNCTION_OF_MAKE.search(word):
        yield Started(unknown=NOT_READ)
    elif operator == "!=":
        yield _line(value)
    elif name == "MAKEFILES" and is_no_file(Word(value)):
        yield Started(unknown=NOT_READ)
    elif COMPILER.fullmatch(name) and shell:
        yield Started(words=(*map(Word, shell), NOT_KNOWN))
    elif name == "SHELL" and not _MEANT_OTHERWISE.isdisjoint(value):
        yield Started(unknown=_WHAT_IT_RUNS)
    elif name == "SHELL" and shell and (shell[1:] or basename(shell[0]) not in SHELLS):
        yield Started(words=(*map(Word, shell), NOT_KNOWN))


def _joined(words: Sequence[Word]) -> Iterator[Started]:
    ends = [at for at, word in enumerate(words) if word.text in _LISTS_OF_ARGUMENTS]
    line = " ".join(word.text for word in words[: min(ends, default=len(words))])
    if line:
        yield _line(line)


def _line_and_arguments(words: Sequence[Word], *, fed: bool) -> Started:
    """As `sh -c 'LINE "$@"'` has it."""
    if any(not word.known for word in words[1:]) or fed:
        return _line(words[0].text + _MORE_WORDS)
    arguments = shell_words(word.text for word in words[1:])
    return _line(f"{words[0].text} {arguments}".rstrip(" ") if arguments else words[0].text)


def line_with_more(line: str) -> Started:
    """A line that gets more words, which aren't known; for ssh, another machine and its command."""
    return _line(line + (_A_MACHINE if _SSH.match(line) else _MORE_WORDS))


def line_with_operand(line: str) -> Started:
    """A line that gets a file of the program that runs it."""
    return _line(line + _A_FILE)


def _line(line: str) -> Started:
    return Started(unknown=_WHAT_IT_RUNS) if UNTOLD in line else Started(line=line)


def _of_setting(setting: Word, found: Said, words: Sequence[Word]) -> Iterator[Started]:
    told = set_by_git(setting.text)
    if told.unknown:
        yield Started(unknown=NOT_READ)
    called = found.operands[0].text if found.operands else ""
    is_called = called.casefold() == told.alias.casefold()
    rest = found.operands[1:] if is_called else ()
    if told.alias and told.line:  # from the top of the working tree
        line = _line_and_arguments((Word(told.line), *rest), fed=not is_called)
        yield line._replace(moved=True)
    elif told.line:
        yield line_with_more(told.line)._replace(moved=True)
    elif told.alias and is_called and setting in words:
        at = words.index(setting)
        without = [*words[: at - 1], *words[at + 1 :]]
        before = without[: len(without) - len(found.operands)]
        yield Started(words=(*before, *map(Word, told.words), *rest))


def _of_find(words: Sequence[Word]) -> Iterator[Started]:
    """Its names for the files aren't known."""
    left = [*words[1:]]
    while left:
        word = left.pop(0)
        if word.splits or word.text == "-files0-from":  # `-exec` and others, or unknown names
            yield Started(unknown=_WHAT_IT_RUNS)
        action = word.text
        if action not in _ACTIONS_OF_FIND:
            continue
        command: list[Word] = []
        while left:
            word = left.pop(0)
            may_end = action in ("-exec", "-execdir") and bool(command)
            if word.text == ";" or (word.text == "+" and may_end and command[-1].text == UNTOLD):
                break
            command.append(_without_names(word))
        if command:
            yield Started(words=tuple(command), moved=action.endswith("dir"))


def _without_names(word: Word) -> Word:
    return Word(word.text.replace("{}", UNTOLD)) if "{}" in word.text else word


def _is_this_machine(host: str) -> bool:
    """By a name that every machine has for itself; what it calls itself besides isn't known."""
    name = host.casefold().removeprefix("ssh://").rpartition("@")[2]
    if name.startswith("["):
        name = name[1:].partition("]")[0]
    elif name.count(":") == 1:
        name = name.partition(":")[0]
    name = address(name.rstrip("."))
    if name in _THIS_MACHINE or name.endswith(".localhost"):
        return True
    found = None if UNTOLD in name else packed_address(name)
    return found is not None and (found in _LOOPBACKS or (len(found) == 4 and found[0] == 127))
