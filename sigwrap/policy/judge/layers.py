"""A policy's rule does not apply where it would weaken a base's rule without overriding it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sigwrap.bare import Protocol, TypeVar
from sigwrap.policy.judge.request import STRICTNESS, Action, Decision
from sigwrap.policy.judge.rules import Rule


class Compiled(Protocol):
    @property
    def rule(self) -> Rule: ...

    @property
    def decision(self) -> Decision: ...


AnyRule = TypeVar("AnyRule", bound=Compiled)


def always(_rule: object) -> bool:
    return True


def is_stricter(one: Action, other: Action) -> bool:
    """Compare two actions. `audit` is no stricter than `allow`: both let the request through."""
    return one is not Action.AUDIT and STRICTNESS[one] > STRICTNESS[other]


def deciding(rules: Sequence[AnyRule], matches: Callable[[AnyRule], bool]) -> AnyRule | None:
    for rule in rules:
        if matches(rule) and weakened(rule, rules, matches) is None:
            return rule
    return None


def weakened(
    rule: AnyRule, rules: Sequence[AnyRule], matches: Callable[[AnyRule], bool]
) -> AnyRule | None:
    """Return the rule of a base that decides without `rule`, if it is stricter and not overridden.

    `rules` are all rules that may match, in their order.
    """
    own, action = rule.rule, rule.decision.action
    if not own.layer or action is Action.DENY:
        return None
    overrides = own.overrides or ()
    beneath = [
        each for each in rules if each.rule.layer < own.layer and each.rule.name not in overrides
    ]
    base = deciding(beneath, matches)
    return base if base is not None and is_stricter(base.decision.action, action) else None


def held_back(
    rules: Sequence[AnyRule], matches: Callable[[AnyRule], bool]
) -> Iterator[tuple[AnyRule, AnyRule]]:
    """Yield each rule that does not apply because of its base, with the base's rule."""
    for rule in rules:
        if matches(rule):
            base = weakened(rule, rules, matches)
            if base is None:
                return
            yield rule, base


def in_the_way(
    rules: Sequence[AnyRule], matches: Callable[[AnyRule], bool], action: Action
) -> list[str]:
    """Return the rules that a new rule with this action has to override."""
    names = []
    while (rule := deciding(rules, matches)) is not None and is_stricter(
        rule.decision.action, action
    ):
        names.append(rule.rule.name)
        rules = rules[rules.index(rule) + 1 :]
    return names
