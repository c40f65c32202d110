"""Proposed rules, as the part of a policy that they would be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sigwrap.policy.tools.draft import COMMAND_RULES, SIGNAL_RULES
from sigwrap.policy.tools.suggest import Suggestion


def policy_lines(suggestions: Iterable[Suggestion | None]) -> Iterator[str]:
    lines: dict[str, dict[str, None]] = {COMMAND_RULES: {}, SIGNAL_RULES: {}}
    for each in suggestions:
        if each is not None and each.line:
            lines[each.section][each.line] = None
    for section, rules in lines.items():
        if rules:
            yield f"{section}:"
            yield from (f"  {rule}" for rule in rules)
