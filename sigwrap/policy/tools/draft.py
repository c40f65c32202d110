"""A rule that is proposed: before it has a name, and as one line of a policy."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sigwrap.policy.judge.match import BadPattern, check_regexes
from sigwrap.policy.judge.rules import Policy
from sigwrap.policy.tools.literal import yaml_list
from sigwrap.tuples import NamedTuple

COMMAND_RULES, SIGNAL_RULES = "command_rules", "signal_rules"
NETWORK_RULES = "network_rules"

_LONGEST_NAME = 60
_MOST_PATTERNS = 16


class Draft(NamedTuple):
    """A rule without a name."""

    section: str
    words: tuple[str, ...]  # for its name
    keys: tuple[tuple[str, str], ...]  # with their values as YAML
    patterns: tuple[str, ...]  # of args_patterns
    decision: str
    note: str = ""  # what whoever reads the line should know
    overrides: tuple[str, ...] = ()


class NoRule(Exception):
    """Says why no rule can change it."""


def rule_line(draft: Draft, name: str) -> str:
    patterns = [("args_patterns", yaml_list(draft.patterns))] if draft.patterns else []
    keys = [("name", name), *draft.keys, *patterns, ("decision", draft.decision)]
    keys += [("overrides", yaml_list(draft.overrides))] if draft.overrides else []
    note = f"  # {draft.note}" if draft.note else ""
    return f"- {{{', '.join(f'{key}: {value}' for key, value in keys)}}}{note}"


def for_both(one: Draft, other: Draft) -> Draft | None:
    if (one.section, one.keys) != (other.section, other.keys):
        return None
    one = one._replace(overrides=tuple(dict.fromkeys((*one.overrides, *other.overrides))))
    if not one.patterns:  # it is about any arguments
        return one
    patterns = tuple(dict.fromkeys((*one.patterns, *other.patterns)))
    is_about_some = other.patterns and fit_together(patterns)
    return one._replace(patterns=patterns) if is_about_some else None


def unused_name(draft: Draft, taken: set[str]) -> str:
    """It is taken then: no two rules of a policy have the same name, its base's included."""
    slug = re.sub(r"[^A-Za-z0-9._]+", "-", "-".join((draft.decision, *draft.words)))
    first = name = slug[:_LONGEST_NAME].strip("-._")
    number = 1
    while name in taken:
        number += 1
        name = f"{first}-{number}"
    taken.add(name)
    return name


def rule_names(policy: Policy) -> set[str]:
    return {
        *(rule.name for rule in policy.command_rules),
        *(rule.name for rule in policy.signal_rules),
        *(rule.name for rule in policy.network_rules),
    }


def fit_together(patterns: Sequence[str]) -> bool:
    """In one rule."""
    if len(patterns) > _MOST_PATTERNS:
        return False
    try:
        check_regexes(patterns)
    except BadPattern:
        return False
    return True
