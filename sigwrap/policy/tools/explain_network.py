"""Why somebody may be talked to, or not: the rule that decides, and those before it."""

from __future__ import annotations

from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.layers import Compiled, held_back
from sigwrap.policy.judge.network import Direction, Endpoint
from sigwrap.policy.judge.rules import NetworkRule
from sigwrap.policy.tools.explain import Explanation, Judgement, Passed, why_not_weaker


def explain_network(engine: Engine, endpoint: Endpoint) -> Explanation:
    rules = engine.policy.network_rules
    decision = engine.network.decide(endpoint)
    about = [rule for rule in rules if rule.direction == endpoint.direction.value]
    decided_by = next((rule for rule in about if rule.name == decision.rule), None)
    before = about[: about.index(decided_by)] if decided_by else about
    matching = held_back(engine.network.rules_about(endpoint), lambda each: each.matches(endpoint))
    held = {own.rule.name: base for own, base in matching}
    way = "listen on" if endpoint.direction is Direction.BIND else "connect to"
    judgement = Judgement(
        what=f"{way} {endpoint} ({endpoint.protocol.value})",
        answer=decision,
        decision=decision,
        decided_at=decided_by.place if decided_by else None,
        description=decided_by.description if decided_by else "",
        passed=tuple(_passed(rule, endpoint, held.get(rule.name)) for rule in before),
        nobody_asked=False,
        runs_instead=(),
        shadows="",
        unrelated=len(rules) - len(about),
        notes=(),
    )
    return Explanation(decision=decision, judgements=(judgement,))


def _passed(rule: NetworkRule, endpoint: Endpoint, base: Compiled | None) -> Passed:
    if base is not None:
        why = why_not_weaker(base)
    elif rule.protocol not in ("", endpoint.protocol.value):
        why = f"is for {rule.protocol}"
    elif rule.ports and endpoint.port not in rule.ports:
        why = f"is for other ports: {', '.join(map(str, rule.ports))}"
    else:
        why = f"is for other destinations: {', '.join(rule.destinations)}"
    return Passed(rule=rule.name, place=rule.place, why=why)
