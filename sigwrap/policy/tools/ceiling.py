"""Whether a policy allows nothing that another one, its ceiling, denies.

The policy must extend the ceiling: then no rule of its own weakens a rule of the ceiling without
`overrides`. The rest is compared piece by piece. So the answer "yes" is certain, and "no" may be
too cautious.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sigwrap.policy.judge.layers import is_stricter
from sigwrap.policy.judge.request import Action
from sigwrap.policy.judge.rules import FileRule, Limits, Policy, Rule, SignalRule
from sigwrap.policy.problems import Place, Problem

_KINDS = ("command", "signal", "file", "network")
_SAME = ("session", "watch", "trust")


def widenings(policy: Policy, ceiling: Policy) -> Iterator[Problem]:
    """Yield a problem for all that may allow more than the ceiling."""
    start = Place(policy.file, 1, 1)
    rules = {kind: (getattr(policy, f"{kind}_rules"), _rules(ceiling, kind)) for kind in _KINDS}
    if any(_texts(given[len(given) - len(above) :]) != above for given, above in rules.values()):
        yield Problem(start, f"it does not extend {ceiling.name} with all its rules")
        return
    top = max((each.layer for _, above in rules.values() for each in above), default=-1)
    found: list[tuple[str, Place]] = []
    for kind, (given, above) in rules.items():
        default: Action = getattr(ceiling, f"default_{kind}")
        own = given[: len(given) - len(above)]
        found += [(f"rule {each.name}", each.place) for each in own if _widens(each, default, top)]
        if is_stricter(default, getattr(policy, f"default_{kind}")):
            found.append((f"the default for {kind}s", start))
    changed = [name for name in _SAME if getattr(policy, name) != getattr(ceiling, name)]
    if policy.env_policy._replace(place=None) != ceiling.env_policy._replace(place=None):
        changed.append("env_policy")
    if policy.asks > ceiling.asks:
        changed.append("approvals")
    if policy.tolerates_old_kernels > ceiling.tolerates_old_kernels:
        changed.append("fallback")
    if any(_is_raised(policy.limits, ceiling.limits, name) for name in Limits._fields):
        changed.append("limits")
    for what, place in (*found, *((name, start) for name in changed)):
        yield Problem(place, f"{what} may allow more than {ceiling.name}")


def _rules(policy: Policy, kind: str) -> list[Rule]:
    return _texts(getattr(policy, f"{kind}_rules"))


def _texts(rules: Sequence[Rule]) -> list[Rule]:
    return [each._replace(place=Place("", 0, 0)) for each in rules]


def _widens(rule: Rule, default: Action, top: int) -> bool:
    """Return whether a rule above those of the ceiling may allow what they or the default deny.

    In a layer above `top`, they hold it back where they are stricter.
    """
    match rule:
        case SignalRule() if rule.fallback is not None or not rule.log:
            return True
        case FileRule() if rule.make_missing:  # sigwrap itself makes them
            return True
    if rule.decision is Action.DENY:
        return False
    is_laxer = is_stricter(default, rule.decision) or rule.decision is Action.REDIRECT
    return is_laxer or bool(rule.overrides) or rule.layer <= top


def _is_raised(limits: Limits, ceiling: Limits, name: str) -> bool:
    limit, most = getattr(limits, name), getattr(ceiling, name)
    is_lower = type(limit) is int and limit > 0 and (not most or limit <= most)
    return limit != most and not is_lower
