"""Proposed rules as a part of a policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sigwrap.events import APPROVED, AUDITED, REFUSED
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.tools.draft import COMMAND_RULES, NETWORK_RULES, SIGNAL_RULES
from sigwrap.policy.tools.suggest import Suggester, Suggestion
from sigwrap.report.folds.attention import Group
from sigwrap.report.folds.summary import Summary


class Suggestions:
    """The rules that a report proposes. It loads the recorded policy once a rule is needed."""

    def __init__(self, summary: Summary) -> None:
        self._summary = summary
        self._suggester: Suggester | None = None

    def of(self, group: Group) -> Suggestion | None:
        if group.outcome in (APPROVED, REFUSED):
            return None
        decision = "deny" if group.outcome == AUDITED else "allow"
        if self._suggester is None:
            policy = self._summary.policy
            self._suggester = Suggester(None if policy is None else Engine(policy))
        events = tuple(event for event, _ in group.lines)
        return self._suggester.rule_for(events, decision, are_some=group.other_lines > 0)


def policy_lines(suggestions: Iterable[Suggestion | None]) -> Iterator[str]:
    lines: dict[str, dict[str, None]] = {
        each: {} for each in (COMMAND_RULES, SIGNAL_RULES, NETWORK_RULES)
    }
    for each in suggestions:
        if each is not None and each.line:
            lines[each.section].update(dict.fromkeys(each.line.split("\n")))
    for section, rules in lines.items():
        if rules:
            yield f"{section}:"
            yield from (f"  {rule}" for rule in rules)
