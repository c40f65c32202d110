"""A proposed rule before it has a name, and why there is none."""

from __future__ import annotations

import re

from sigwrap.policy.tools.literal import yaml_list
from sigwrap.tuples import NamedTuple

COMMAND_RULES, SIGNAL_RULES = "command_rules", "signal_rules"
NETWORK_RULES = "network_rules"
SECTIONS = (COMMAND_RULES, SIGNAL_RULES, NETWORK_RULES)

_LONGEST_NAME = 60


class Draft(NamedTuple):
    """A rule without a name."""

    section: str
    words: tuple[str, ...]  # for its name
    keys: tuple[tuple[str, str], ...]  # with their values as YAML
    note: str = ""
    overrides: tuple[str, ...] = ()  # rules of the recorded policy


class NoRule(Exception):
    """Say why no rule is proposed."""


def rule_line(draft: Draft, name: str) -> str:
    keys = [("name", name), *draft.keys]
    keys += [("overrides", yaml_list(draft.overrides))] if draft.overrides else []
    note = f"  # {draft.note}" if draft.note else ""
    return f"- {{{', '.join(f'{key}: {value}' for key, value in keys)}}}{note}"


def unused_name(draft: Draft, taken: set[str]) -> str:
    """Return a name that is not taken, and add it to those."""
    slug = re.sub(r"[^A-Za-z0-9._]+", "-", "-".join(draft.words))
    name = first = slug[:_LONGEST_NAME].strip("-._")
    number = 1
    while name in taken:
        number += 1
        name = f"{first}-{number}"
    taken.add(name)
    return name
