"""Read a tool's subcommand: the first arguments that are no options.

An option that isn't in the tool's table may take the next argument as its value, or not: `gh -b x
pr merge` merges. A flag may take a `false`: `npm --dry-run false publish` publishes. So there can
be two readings. A rule that denies matches if one of them does, a rule that allows if both do.
"""

from __future__ import annotations

from collections.abc import Sequence

from sigwrap.bare import lru_cache, re
from sigwrap.policy.judge.match import MAX_MATCHED_ARGUMENTS
from sigwrap.policy.judge.tools import (
    ANY_TOOL,
    SINGLE_DASH,
    Options,
    aliases_of,
    commands_of,
    has_subcommands,
    options_of,
    tool_name,
)

MAX_WORDS = 3

Reading = tuple[str, ...]

_CAPITAL = re.compile("[A-Z]")
_CAMEL_CASE = frozenset({"npm"})  # `distTag` is `dist-tag`
_TOOLCHAINS = frozenset({"cargo", "rustup"})  # a first argument `+nightly` is no subcommand
VALUES_OF_FLAGS = frozenset({"true", "false", "null", "always"})


def name_for_subcommands(basename: str, called: str) -> str:
    """Return the file's own name if it has subcommands, or the name by which it was called."""
    return basename if has_subcommands(basename) else called


def subcommand(name: str, argv: Sequence[str]) -> str:
    """Return the first word of the subcommand, or ""; unknown options count as flags."""
    return next(iter(readings(name, argv)[0]), "")


def readings(name: str, argv: Sequence[str]) -> tuple[Reading, ...]:
    flags, is_sure = _words(name, argv, unknown_take_values=False)
    if is_sure:
        return (flags,)
    values, _ = _words(name, argv, unknown_take_values=True)
    return (flags,) if values == flags else (flags, values)


@lru_cache(maxsize=1024)
def names_of(name: str, reading: Reading) -> frozenset[str]:
    """Return what a rule may call it: its first one, two or three words, as they are written and
    as the tool understands them."""
    if not reading:
        return frozenset([""])
    firsts = {reading[0], _meant(tool_name(name), reading[0])}
    rest = reading[1:]
    return frozenset(
        " ".join((first, *rest[:count])) for first in firsts for count in range(len(rest) + 1)
    )


def _words(name: str, argv: Sequence[str], *, unknown_take_values: bool) -> tuple[Reading, bool]:
    """Return the words, and whether there is no other reading."""
    tool = tool_name(name)
    known = has_subcommands(tool)
    options = options_of(tool if known else ANY_TOOL)
    words: list[str] = []
    is_sure = True
    position = 1
    end = min(len(argv), MAX_MATCHED_ARGUMENTS)
    options_over = False
    while position < end and len(words) < MAX_WORDS:
        argument = argv[position]
        position += 1
        if options_over or not argument.startswith("-") or argument == "-":
            if not (tool in _TOOLCHAINS and not words and argument.startswith("+")):
                words.append(argument)
        elif argument == "--":
            options_over = True
        elif "=" not in argument and position < end:
            takes_value = _takes_value(options, argument, is_long=known and tool in SINGLE_DASH)
            if takes_value is None:
                may_take = argv[position] != "--"
            else:
                may_take = not takes_value and argv[position] in VALUES_OF_FLAGS
            is_sure = is_sure and not may_take
            position += takes_value or (may_take and unknown_take_values)
    return tuple(words), is_sure


def _takes_value(options: Options, argument: str, *, is_long: bool) -> bool | None:
    """Return whether an option takes the next argument; None if it is unknown.

    `-yo NAME=VALUE` are a flag and an option whose value follows, `-oNAME` has its value attached.
    """
    name = argument[1:].removeprefix("-")
    if argument.startswith("--") or is_long:
        is_known = name in options.spellings and (is_long or len(name) > 1)
        return name in options.with_value if is_known else None
    for at, letter in enumerate(name, start=1):
        if letter in options.with_value:
            return at == len(name)
        if letter not in options.spellings:
            return None
    return False


def _meant(tool: str, word: str) -> str:
    if tool in _CAMEL_CASE:
        word = _CAPITAL.sub(lambda capital: f"-{capital[0].lower()}", word)
    aliases, commands = aliases_of(tool), commands_of(tool)
    if word in aliases:
        return aliases[word]
    if not word or word in commands:
        return word
    starting = {aliases.get(each, each) for each in (*commands, *aliases) if each.startswith(word)}
    return starting.pop() if len(starting) == 1 and commands else word
