"""Flags of a command line in any of their spellings, for rules that deny, approve or redirect.

`-rf`, `-r -f`, `-fr` and `--recursive --force` are the same two flags of rm. The table says which
spellings are one option, and which options take a value. In doubt a flag is there: a word that
begins with a hyphen counts even where it may be a value, and the start of a long flag counts for
all flags that begin so. So no rule may allow by a flag, which another word may also undo.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sigwrap.bare import NamedTuple
from sigwrap.policy.judge.match import MAX_MATCHED_ARGUMENTS
from sigwrap.policy.judge.tools import (
    SINGLE_DASH,
    Options,
    has_options,
    options_of,
    tool_name,
)

_SAME_SUBCOMMANDS = {"podman": "docker"}
# `docker image rm` is `docker rm`, with nearly the same options.
_GROUPS = {"docker": ("builder", "compose", "container", "image", "network", "volume")}
_WHOLE_WORDS = SINGLE_DASH | {"docker", "gh", "kubectl", "cargo", "pnpm"}  # no abbreviations
_SHELLS = frozenset({"bash", "sh", "dash", "zsh"})  # `-oc NAME LINE`: values follow the letters
_DASH_OPTIONAL = frozenset({"tar"})  # of the first argument: `tar xzf`
_SUBCOMMANDS_DIFFER = frozenset({"git"})  # `git -C` is not `git branch -C`
_MAX_WORDS = 2  # of a subcommand in the table
_OPERANDS = {"ssh": 2}  # it reads options after the host too


class Flags(NamedTuple):
    """The flags of a command line, as they are written."""

    options: Options
    found: frozenset[str]
    starts: tuple[str, ...]  # long flags that may be short for others

    def has(self, flag: str) -> bool:
        """Return whether the command line may have this flag in any spelling."""
        wanted = self.options.spellings.get(flag, frozenset((flag,)))
        return not wanted.isdisjoint(self.found) or any(
            len(each) > 1 and each.startswith(self.starts) for each in wanted
        )


def flags_of(name: str, argv: Sequence[str]) -> Flags:
    """Return the flags of a command line; `name` is the program's."""
    return _Scanner(tool_name(name), argv).flags()


class _Scanner:
    def __init__(self, tool: str, argv: Sequence[str]) -> None:
        self._tool = _SAME_SUBCOMMANDS.get(tool, tool)
        self._options = options_of(tool)
        self._argv = argv[: MAX_MATCHED_ARGUMENTS + 1]
        self._words = [self._tool]
        self._found: set[str] = set()
        self._starts: list[str] = []
        self._waiting = ""  # the long option whose value follows
        self._values = 0  # how many of the following arguments are values
        self._may_be_value = False  # of an option that is not in the table
        self._operands = 0

    def flags(self) -> Flags:
        for position, argument in enumerate(self._argv[1:]):
            if not self._read(argument, is_first=position == 0):
                break
        return Flags(self._options, frozenset(self._found), tuple(self._starts))

    def _read(self, argument: str, *, is_first: bool) -> bool:
        """Return whether options may still follow."""
        may_be_value, self._may_be_value = self._may_be_value, False
        is_value, self._values = self._values > 0, max(0, self._values - 1)
        waiting, self._waiting = self._waiting, ""
        if waiting:
            self._found.update(self._implied_by(f"{waiting}={argument}"))
        if argument.startswith("+") and self._tool in _SHELLS:
            self._values += argument[-1] in self._options.with_value
        elif argument == "--":
            return is_value or may_be_value
        elif self._is_option(argument, is_first=is_first):
            if argument.startswith("--") or self._tool in SINGLE_DASH:
                self._long(argument.lstrip("-"))
            else:
                self._short(argument)
        elif not is_value:
            self._operands += 1
            if self._options.stop_at_operand:
                return may_be_value or self._operands < _OPERANDS.get(self._tool, 1)
            self._operand(argument)
        return True

    def _is_option(self, argument: str, *, is_first: bool) -> bool:
        if argument.startswith("-"):
            return argument != "-"
        return is_first and self._tool in _DASH_OPTIONAL

    def _operand(self, word: str) -> None:
        if len(self._words) > _MAX_WORDS or word in _GROUPS.get(self._tool, ()):
            return
        self._words.append(word)
        key = " ".join(self._words)
        is_first = len(self._words) == 2
        if has_options(key) or (is_first and self._tool in _SUBCOMMANDS_DIFFER):
            self._options = options_of(key)
            self._found.clear()
            self._starts.clear()

    def _long(self, argument: str) -> None:
        name, has_value, _ = argument.partition("=")
        options = self._options
        self._found.add(name)
        self._found.update(self._implied_by(argument))
        self._waiting = "" if has_value else name
        if len(name) == 1 or name not in options.spellings:
            if self._tool not in _WHOLE_WORDS:
                self._starts.append(name)
            self._may_be_value = not has_value
        elif name in options.with_value and not has_value:
            self._values += 1

    def _implied_by(self, option: str) -> Iterator[str]:
        """Yield the flags that an option implies with this value: `location=global`."""
        name, _, value = option.partition("=")
        for each, letters in self._options.implied.items():
            if "=" in each and each.startswith(name) and each.endswith(f"={value}"):
                yield from letters

    def _short(self, argument: str) -> None:
        options = self._options
        letters = argument.removeprefix("-")
        self._found.add(letters)  # some tools take long flags with one hyphen
        for at, letter in enumerate(letters, start=1):
            if letter == "=":
                return
            self._found |= {letter, *options.implied.get(letter, "")}
            is_last = at == len(letters)
            if letter in options.with_value:
                if self._tool in _SHELLS or letters == argument:  # as in `tar xfC a.tar dir`
                    self._values += 1
                    continue
                self._values += is_last
                return
            if letter in options.attached:
                return
            if letter not in options.spellings:
                self._may_be_value = is_last
