"""The `tests:` of a policy: the decision that each expects, and the decision that is made.

The tests of a base also find rules of a policy that would make the base laxer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from sigwrap.bare import Any, NamedTuple
from sigwrap.policy.judge.engine import Engine, Facts, matching
from sigwrap.policy.judge.layers import Compiled, always, held_back
from sigwrap.policy.judge.loading import loading_variables
from sigwrap.policy.judge.network import Direction, Endpoint, Protocol, endpoint_of
from sigwrap.policy.judge.recorded import program_named
from sigwrap.policy.judge.request import CommandRequest, Decision, Program, SignalRequest
from sigwrap.policy.judge.rules import Case, CommandCase, FileCase, NetworkCase, Policy, SignalCase
from sigwrap.policy.judge.signals import signal_name
from sigwrap.policy.judge.wrappers import unwrap
from sigwrap.policy.problems import Problem
from sigwrap.policy.tools.again import Request, decide


class CaseResult(NamedTuple):
    case: Case
    decision: Decision

    @property
    def passed(self) -> bool:
        return self.decision.action is self.case.decision and self.case.rule in (
            "",
            self.decision.rule,
        )

    def __str__(self) -> str:
        case = self.case
        wanted = case.decision.value + (f" by {case.rule}" if case.rule else "")
        got = f"{self.decision.action.value} by {self.decision.rule}"
        verdict = f"ok, {got}" if self.passed else f"FAILED: expected {wanted}, got {got}"
        return f"{case_text(case)}: {verdict}"


def run_cases(engine: Engine) -> Iterator[CaseResult]:
    for case in engine.policy.cases:
        if isinstance(case, FileCase):
            decision = engine.files.decide(case.operation, case.path)
        else:
            decision = decide(engine, _request(case))
        yield CaseResult(case=case, decision=decision)


def weakenings(policy: Policy) -> tuple[Problem, ...]:
    """Return a problem for each test where a rule without `overrides` does not apply."""
    engine = Engine(policy)
    found = dict.fromkeys(
        (own.rule.place, _weakens(own, base, case))
        for case in (*policy.base_cases, *policy.cases)
        for own, base in _weakened(engine, case)
        if own.rule.place.file == policy.file and own.rule.overrides is None
    )
    return tuple(Problem(place=place, message=message) for place, message in found)


def _weakens(own: Compiled, base: Compiled, case: Case) -> str:
    change = f"{base.decision.action.value} → {own.decision.action.value}"
    is_cut = isinstance(case, CommandCase) and case.truncated
    more = " with more arguments than sigwrap reads" if is_cut else ""
    return f"{own.rule.name} weakens {base.rule.name}: {change} for `{case_text(case)}`{more}"


def _weakened(engine: Engine, case: Case) -> Iterable[tuple[Compiled, Compiled]]:
    """Return each rule of the policy that its base overrules, with the rule of the base."""
    if isinstance(case, FileCase):
        return held_back(engine.files.rules_about(case.operation, case.path), always)
    match _request(case):
        case CommandRequest() as request:
            facts = [Facts(each, request, engine.home) for each in request.programs]
            found = [held_back(engine.command_rules, matching(each)) for each in facts]
            return chain.from_iterable(found)
        case SignalRequest() as asked:
            signals = [each for each in engine.signal_rules if asked.signal in each.rule.signals]
            return held_back(signals, lambda rule: rule.matches(asked))
        case Endpoint() as endpoint:
            about = engine.network.rules_about(endpoint)
            return held_back(about, lambda rule: rule.matches(endpoint))


def _request(case: CommandCase | SignalCase | NetworkCase) -> Request:
    if isinstance(case, SignalCase):
        return case.request
    if isinstance(case, NetworkCase):
        return endpoint_of(case.destination, Direction(case.direction), Protocol(case.protocol))
    request = command_request(case.argv, folder=case.cwd, depth=case.depth)
    facts = {"system_file": case.system_file, "loads_code": case.loads_code}
    known: dict[str, Any] = {name: fact for name, fact in facts.items() if fact is not None}
    programs = tuple(each._replace(**known) for each in request.programs)
    return request._replace(programs=programs, truncated=case.truncated, traced=case.traced)


def command_request(
    argv: Sequence[str], *, folder: str = "/project", depth: int = 1
) -> CommandRequest:
    """Return the request of a command line and of the commands that its wrappers run.

    No file is read: a bare name stands for a file in /usr/bin, and a relative path starts at
    `folder`. A file in a system directory counts as a system file. The interpreter of a script is
    not known.
    """
    outer = program_named(argv[0], argv, folder)
    programs = [outer]
    for wrapped in unwrap(outer.name, argv):
        inner = program_named(wrapped.argv[0], wrapped.argv, folder)
        if wrapped.same_file:
            path = programs[-1].path
            inner = inner._replace(path=path, counts_by_name=wrapped.spelling)
        programs.append(with_variables(inner, wrapped.variables))
    return CommandRequest(tuple(programs), depth, cwd=folder)


def with_variables(program: Program, variables: Iterable[str]) -> Program:
    """Return the program as it runs with these variables set."""
    given = [(name, b"set") for name in variables]
    if loading_variables((program.name,), given, {}):
        return program._replace(loads_code=True)
    return program


def case_text(case: Case) -> str:
    if isinstance(case, CommandCase):
        return " ".join(case.argv)
    if isinstance(case, FileCase):
        return f"{case.operation.value} {case.path}"
    if isinstance(case, NetworkCase):
        return f"{case.direction} {case.destination}"
    target = ", ".join(sorted(each.value for each in case.request.target_types))
    handled = ", which handles it" if case.request.handled else ""
    return f"{signal_name(case.request.signal)} to {target}{handled}"
