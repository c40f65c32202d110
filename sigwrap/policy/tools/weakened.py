"""Rules of a policy that would make its base laxer, found by the `tests:` of the base."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from sigwrap.policy.judge.engine import Engine, Facts, matching
from sigwrap.policy.judge.layers import Compiled, always, held_back
from sigwrap.policy.judge.rules import (
    Case,
    CommandCase,
    FileCase,
    NetworkCase,
    Policy,
    SignalCase,
)
from sigwrap.policy.problems import Problem
from sigwrap.policy.tools.cases import case_endpoint, case_request, case_text

Weakening = tuple[Compiled, Compiled]  # the policy's rule, and the base's


def weakenings(policy: Policy) -> tuple[Problem, ...]:
    """Return a problem for each test where a rule without `overrides` does not apply."""
    engine = Engine(policy)
    found = dict.fromkeys(
        (own.rule.place, _message(own, base, case))
        for case in (*policy.base_cases, *policy.cases)
        for own, base in _weakened(engine, case)
        if own.rule.place.file == policy.file and own.rule.overrides is None
    )
    return tuple(Problem(place=place, message=message) for place, message in found)


def _message(own: Compiled, base: Compiled, case: Case) -> str:
    change = f"{base.decision.action.value} → {own.decision.action.value}"
    is_cut = isinstance(case, CommandCase) and case.truncated
    more = " with more arguments than sigwrap reads" if is_cut else ""
    return f"{own.rule.name} weakens {base.rule.name}: {change} for `{case_text(case)}`{more}"


def _weakened(engine: Engine, case: Case) -> Iterable[Weakening]:
    match case:
        case CommandCase():
            request = case_request(case)
            facts = [Facts(each, request, engine.home) for each in request.programs]
            found = [held_back(engine.command_rules, matching(each)) for each in facts]
            return chain.from_iterable(found)
        case FileCase():
            return held_back(engine.files.rules_about(case.operation, case.path), always)
        case NetworkCase():
            endpoint = case_endpoint(case)
            about = engine.network.rules_about(endpoint)
            return held_back(about, lambda rule: rule.matches(endpoint))
        case SignalCase():
            asked = case.request
            signals = [each for each in engine.signal_rules if asked.signal in each.rule.signals]
            return held_back(signals, lambda rule: rule.matches(asked))
