"""Proposed rules before they have names, and why there are none."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sigwrap.bare import NamedTuple
from sigwrap.policy.judge.engine import is_system_file
from sigwrap.policy.judge.globs import readable
from sigwrap.policy.judge.request import Program
from sigwrap.policy.tools.literal import yaml_arguments, yaml_list
from sigwrap.text import printable

COMMAND_RULES, SIGNAL_RULES = "command_rules", "signal_rules"
NETWORK_RULES = "network_rules"
SECTIONS = (COMMAND_RULES, SIGNAL_RULES, NETWORK_RULES)

MOST_RULES_TOGETHER = 8
_LONGEST_NAME = 60
_LONGEST_ARGUMENTS = 4_000  # characters of one rule


Keys = tuple[tuple[str, str], ...]
"""Keys with their values as YAML."""


class Draft(NamedTuple):
    """A rule without a name."""

    section: str
    words: tuple[str, ...]  # for its name
    keys: Keys
    note: str = ""
    overrides: tuple[str, ...] = ()  # rules of the recorded policy


class NoRule(Exception):
    """Say why no rule is proposed."""


def exact_command(commands: Iterable[str], arguments: Sequence[str]) -> Keys:
    """Return the keys of a rule for these names or paths with exactly these arguments."""
    if sum(map(len, arguments)) > _LONGEST_ARGUMENTS:
        raise NoRule("its arguments are too long for a rule")
    if any(readable(each) != each for each in arguments):
        raise NoRule("its arguments are not valid text")
    return ("commands", yaml_list(commands)), ("args", yaml_arguments(arguments))


def allowed_name(program: Program) -> str:
    """Return the name by which a rule allows a program: a link's only if the system owns it."""
    return program.name if is_system_file(program) else program.basename


def rule_line(draft: Draft, name: str) -> str:
    keys = [("name", name), *draft.keys]
    keys += [("overrides", yaml_list(draft.overrides))] if draft.overrides else []
    note = f"  # {printable(draft.note)}" if draft.note else ""
    return f"- {{{', '.join(f'{key}: {value}' for key, value in keys)}}}{note}"


def unused_name(words: Iterable[str], taken: set[str]) -> str:
    """Return a name that is not taken, and add it to those."""
    slug = re.sub(r"[^A-Za-z0-9._]+", "-", "-".join(words))
    name = first = slug[:_LONGEST_NAME].strip("-._")
    number = 1
    while name in taken:
        number += 1
        name = f"{first}-{number}"
    taken.add(name)
    return name


@dataclass(slots=True)
class Together:
    """The rules for all requests of one kind, up to a number."""

    rules: dict[tuple[Draft, ...], None] = field(default_factory=dict)
    requests: int = 0  # that the rules are for
    why_not: str = ""  # for the first other request

    def add(self, drafts: tuple[Draft, ...] | str) -> None:
        """Add the rules for a request, or why there are none."""
        if isinstance(drafts, str):
            self.why_not = self.why_not or drafts
        elif drafts in self.rules or len(self.rules) < MOST_RULES_TOGETHER:
            self.rules[drafts] = None
            self.requests += 1
        else:
            self.why_not = self.why_not or "more rules would be needed"
