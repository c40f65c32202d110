"""The words that say what a tool is to do: the first arguments that are no options.

An option that isn't in the tool's table may take the next argument as its value, or not: `gh -b x
pr merge` merges. A flag may take a `false`: `npm --dry-run false publish` publishes. So there can
be two readings, and a rule is held against both: one that refuses is meant for either, one that
allows only holds where both are allowed.
"""

from __future__ import annotations

from collections.abc import Sequence

from sigwrap.bare import re
from sigwrap.bare.functools import lru_cache
from sigwrap.policy.judge.tools import ANY_TOOL, SAME_AS, Tool, is_known, tool_named

MAX_WORDS = 3
MAX_LOOKED_AT = 4096

Reading = tuple[str, ...]

_CAPITAL = re.compile("[A-Z]")
VALUES_OF_FLAGS = frozenset({"true", "false", "null", "always"})


def has_subcommands(name: str) -> bool:
    return is_known(tool_name(name))


def name_for_subcommands(basename: str, called: str) -> str:
    """The file's own name, where that is a command with subcommands; else what it is called as."""
    return basename if has_subcommands(basename) else called


def subcommand(name: str, argv: Sequence[str]) -> str:
    """The first of these words, options that aren't known being flags. The empty string where there
    is none."""
    return next(iter(readings(name, argv)[0]), "")


def readings(name: str, argv: Sequence[str]) -> tuple[Reading, ...]:
    tool = _tool_of(name)
    flags, sure = _words(tool, argv, unknown_take_values=False)
    if sure:
        return (flags,)
    values, _ = _words(tool, argv, unknown_take_values=True)
    return (flags,) if values == flags else (flags, values)


@lru_cache(maxsize=1024)
def names_of(name: str, reading: Reading) -> frozenset[str]:
    """What a rule may call it: the first word, the first two, the first three; as it was written,
    and as the tool understands it."""
    if not reading:
        return frozenset([""])
    tool = _tool_of(name)
    firsts = {reading[0], _meant(tool, reading[0])}
    rest = reading[1:]
    return frozenset(
        " ".join((first, *rest[:count])) for first in firsts for count in range(len(rest) + 1)
    )


def _words(tool: Tool, argv: Sequence[str], *, unknown_take_values: bool) -> tuple[Reading, bool]:
    """And whether there is no other reading."""
    words: list[str] = []
    sure = True
    position = 1
    end = min(len(argv), MAX_LOOKED_AT)
    options_over = False
    while position < end and len(words) < MAX_WORDS:
        argument = argv[position]
        position += 1
        if options_over or not argument.startswith("-") or argument == "-":
            if not (tool.toolchain and not words and argument.startswith("+")):
                words.append(argument)
        elif argument == "--":
            options_over = True
        elif argument in tool.with_value or _cluster_takes_value(tool, argument):
            position += 1
        elif "=" not in argument and position < end and _may_take(tool, argument, argv[position]):
            sure = False
            if unknown_take_values:
                position += 1
    return tuple(words), sure


def _may_take(tool: Tool, option: str, following: str) -> bool:
    if option in tool.flags or _is_known_cluster(tool, option):
        return following in VALUES_OF_FLAGS
    return following != "--"


def _cluster_takes_value(tool: Tool, argument: str) -> bool:
    """`-yo NAME=VALUE`: flags, and then an option whose value follows."""
    letters = argument[1:]
    return (
        len(letters) > 1
        and not argument.startswith("--")
        and f"-{letters[-1]}" in tool.with_value
        and all(f"-{letter}" in tool.flags for letter in letters[:-1])
    )


def _is_known_cluster(tool: Tool, argument: str) -> bool:
    """Flags in one word, or an option with its value attached."""
    if argument.startswith("--"):
        return False
    for letter in argument[1:]:
        if f"-{letter}" in tool.with_value:
            return True
        if f"-{letter}" not in tool.flags:
            return False
    return True


def _meant(tool: Tool, word: str) -> str:
    if tool.camel_case:
        word = _CAPITAL.sub(lambda capital: f"-{capital[0].lower()}", word)
    if word in tool.aliases:
        return tool.aliases[word]
    if not word or not tool.commands or word in tool.commands:
        return word
    starting = {
        tool.aliases.get(each, each)
        for each in (*tool.commands, *tool.aliases)
        if each.startswith(word)
    }
    return starting.pop() if len(starting) == 1 else word


def _tool_of(name: str) -> Tool:
    return tool_named(tool_name(name)) or ANY_TOOL


@lru_cache(maxsize=1024)
def tool_name(name: str) -> str:
    """`pip3.11` is a pip."""
    known = SAME_AS.get(name, name)
    if is_known(known):
        return known
    plain = name.rstrip("0123456789.").rstrip("-")
    return SAME_AS.get(plain, plain)
