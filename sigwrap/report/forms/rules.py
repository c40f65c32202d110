"""Proposed rules as a part of a policy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sigwrap.outcomes import APPROVED, AUDITED, REFUSED
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
    return grouped_lines(([each], "") for each in suggestions if each is not None)


def grouped_lines(groups: Iterable[tuple[Iterable[Suggestion], str]]) -> Iterator[str]:
    """Yield the rules of each group after the group's comment, if there is one."""
    sections = (COMMAND_RULES, SIGNAL_RULES, NETWORK_RULES)
    lines: dict[str, dict[str, None]] = {each: {} for each in sections}
    for suggestions, comment in groups:
        for each in suggestions:
            if not each.line:
                continue
            new = [line for line in each.line.split("\n") if line not in lines[each.section]]
            if new:
                lines[each.section].update(dict.fromkeys([comment] if comment else []))
                lines[each.section].update(dict.fromkeys(new))
    for section, rules in lines.items():
        if rules:
            yield f"{section}:"
            yield from (f"  {rule}" for rule in rules)
