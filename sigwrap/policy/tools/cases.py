"""The `tests:` of a policy: the decision that each expects, and the decision that is made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.loading import loading_variables
from sigwrap.policy.judge.network import Direction, Endpoint, Protocol, endpoint_of
from sigwrap.policy.judge.recorded import program_named
from sigwrap.policy.judge.request import CommandRequest, Decision
from sigwrap.policy.judge.rules import Case, CommandCase, FileCase, NetworkCase
from sigwrap.policy.judge.signals import signal_name
from sigwrap.policy.judge.wrappers import unwrap
from sigwrap.tuples import NamedTuple


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
        return f"{case.place}: {case_text(case)}: {verdict}"


def run_cases(engine: Engine) -> Iterator[CaseResult]:
    for case in engine.policy.cases:
        if isinstance(case, CommandCase):
            yield CaseResult(case=case, decision=engine.decide_command(case_request(case)))
        elif isinstance(case, FileCase):
            yield CaseResult(case=case, decision=engine.files.decide(case.operation, case.path))
        elif isinstance(case, NetworkCase):
            yield CaseResult(case=case, decision=engine.network.decide(case_endpoint(case)))
        else:
            yield CaseResult(case=case, decision=engine.decide_signal(case.request))


def case_request(case: CommandCase) -> CommandRequest:
    return command_request(
        case.argv,
        folder=case.cwd,
        depth=case.depth,
        truncated=case.truncated,
        traced=case.traced,
        system_file=case.system_file,
        loads_code=case.loads_code,
    )


def case_endpoint(case: NetworkCase) -> Endpoint:
    return endpoint_of(case.destination, Direction(case.direction), Protocol(case.protocol))


def command_request(
    argv: Sequence[str],
    *,
    folder: str = "/project",
    depth: int = 1,
    truncated: bool = False,
    traced: bool = False,
    system_file: bool | None = None,
    loads_code: bool | None = None,
) -> CommandRequest:
    """A command line as a request, wrappers unwrapped, without looking at any file: a bare name is
    taken to be in /usr/bin, a relative path to start at `folder`, and no script's interpreter is
    known. What is in one of the system's folders is taken to be the system's."""
    outer = program_named(argv[0], argv, folder)
    programs = [outer]
    for wrapped in unwrap(outer.name, argv):
        inner = program_named(wrapped.argv[0], wrapped.argv, folder)
        if wrapped.same_file:
            path = programs[-1].path
            inner = inner._replace(path=path, counts_by_name=wrapped.spelling)
        variables = [(name, b"set") for name in wrapped.variables]
        if loading_variables((inner.name,), variables, {}):
            inner = inner._replace(loads_code=True)
        programs.append(inner)
    if system_file is not None:
        programs = [each._replace(system_file=system_file) for each in programs]
    if loads_code is not None:
        programs = [each._replace(loads_code=loads_code) for each in programs]
    return CommandRequest(tuple(programs), depth, truncated, traced, folder)


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
