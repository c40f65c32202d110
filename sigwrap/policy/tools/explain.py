"""Explain a decision: the rule that decides, the rules before it, and removed variables."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from sigwrap.bare import NamedTuple
from sigwrap.policy.judge.engine import OVERRIDES, CompiledSignalRule, Engine, Facts, matching
from sigwrap.policy.judge.environment import Kept, Removed, judge_names
from sigwrap.policy.judge.files import CGROUP_RULE, IN_A_FOLDER, FileRules
from sigwrap.policy.judge.layers import AnyRule, Compiled, always, held_back
from sigwrap.policy.judge.match import UNTOLD
from sigwrap.policy.judge.network import Direction, Endpoint
from sigwrap.policy.judge.request import (
    Action,
    CommandRequest,
    Decision,
    Operation,
    Program,
    SignalRequest,
    TargetType,
    is_below_policies,
    most_specific,
)
from sigwrap.policy.judge.rules import FileRule, NetworkRule, Policy, Rule
from sigwrap.policy.judge.signals import signal_name
from sigwrap.policy.judge.system_folders import PATH_SHADOW_RULE, what_was_found
from sigwrap.policy.problems import Place
from sigwrap.policy.tools.show import rule_entries
from sigwrap.text import printable, shortened

WORDS_SHOWN = 5
_WORD_SHOWN = 80
_UNKNOWN_SHOWN = "…"
_CGROUPS = "through cgroup files, a process can stop and kill other processes"
_ONLY_EXISTING = "sigwrap can deny reading only files that exist when the command starts."
_NO_NEW_NAMES = "so it is allowed only for files that exist when the command starts."
_OTHER_REASONS = {  # for failing conditions that are no keys of a rule
    "commands": "names only a link to the file",
    "elsewhere": "allows, but the file is on a mount outside sigwrap's namespace",
}

_DECIDES = ""
Tried = Iterable[tuple[Rule, str | None]]
"""Rules in their order, each with its failing condition, or _DECIDES; None: it is unrelated."""


class Passed(NamedTuple):
    """A rule before the deciding one, and why it does not decide."""

    rule: str
    place: Place
    why: str


class Judgement(NamedTuple):
    """The decision of the rules about one program, signal, file or connection."""

    what: str
    answer: Decision  # the final decision
    decision: Decision  # of the rules; `answer` differs if the program shadows another
    decided_at: Place | None  # None: no rule matched
    description: str
    passed: tuple[Passed, ...]
    approvals_denied: bool  # the rule asks for approval, and the policy denies instead
    unrelated: int  # rules before the deciding one that are about something else
    runs_instead: tuple[str, ...] = ()
    shadows: str = ""  # the system command that it comes before in PATH
    notes: tuple[str, ...] = ()


class Explanation(NamedTuple):
    decision: Decision
    judgements: tuple[Judgement, ...]


def explain_command(engine: Engine, request: CommandRequest) -> Explanation:
    judged = [_program(engine, each, request) for each in request.programs]
    shown = [
        judgement
        for program, judgement in zip(request.programs, judged, strict=True)
        if judgement.decided_at or not program.counts_by_name
    ]
    return Explanation(engine.decide_command(request), tuple(shown))


def _program(engine: Engine, program: Program, request: CommandRequest) -> Judgement:
    decision = engine.decide_program(program, request)
    facts = Facts(program, request, engine.home)
    tried = (
        (each.rule, (each.failing_condition(facts) or _DECIDES) if each.names(facts) else None)
        for each in engine.command_rules
    )
    called = program.name if program.counts_by_name else program.path
    if program.found:
        called = what_was_found(program, request.cwd)
    what = " ".join([called, *program.argv[1:]]).replace(UNTOLD, _UNKNOWN_SHOWN)
    redirect = decision.redirect_to
    return _judgement(
        what, decision, tried, _held(held_back(engine.command_rules, matching(facts)))
    )._replace(
        answer=engine.decide_command(request._replace(programs=(program,))),
        runs_instead=(
            () if redirect is None else (redirect.command, *redirect.arguments(program.argv))
        ),
        shadows=program.shadows,
    )


def explain_signal(engine: Engine, request: SignalRequest) -> Explanation:
    about = [each for each in engine.signal_rules if request.signal in each.rule.signals]
    held = _held(held_back(about, lambda rule: rule.matches(request)))

    def failing(rule: CompiledSignalRule) -> str | None:
        if rule not in about:
            return None
        if rule.matches(request):
            return OVERRIDES if rule.rule.name in held else _DECIDES
        return "handled" if rule.target_matches(request) else "target"

    what = f"{signal_name(request.signal)} to {_target(request)}"
    tried = ((each.rule, failing(each)) for each in engine.signal_rules)
    return _alone(_judgement(what, engine.decide_signal(request), tried, held))


def explain_network(engine: Engine, endpoint: Endpoint) -> Explanation:
    decision, about = engine.network.decide(endpoint), engine.network.rules_about(endpoint)
    held = _held(held_back(about, lambda rule: rule.matches(endpoint)))

    def failing(rule: NetworkRule) -> str | None:
        if rule.direction != endpoint.direction.value:
            return None
        if rule.name == decision.rule:
            return _DECIDES
        if rule.name in held:
            return OVERRIDES
        if rule.protocol not in ("", endpoint.protocol.value):
            return "protocol"
        is_other_port = rule.ports and endpoint.port not in rule.ports
        return "ports" if is_other_port else "destinations"

    verb = "listen on" if endpoint.direction is Direction.BIND else "connect to"
    what = f"{verb} {endpoint} ({endpoint.protocol.value})"
    tried = ((each, failing(each)) for each in engine.policy.network_rules)
    return _alone(_judgement(what, decision, tried, held))


def explain_file(
    engine: Engine, on_disk: FileRules, operation: Operation, path: str, given: str, *, exists: bool
) -> Explanation:
    """Explain access to the real path of a file, which the policy may name by the path `given`.

    `on_disk` are the rules as the kernel would enforce them here. They leave out denied files that
    do not exist, so for an absent file the policy alone decides, as in its `tests:`.
    """
    decision, by_policy = on_disk.decide(operation, path), engine.files.decide(operation, given)
    notes: tuple[str, ...] = ()
    if decision.rule == CGROUP_RULE:
        decision = decision._replace(reason=_CGROUPS)
    elif not exists and by_policy.action is Action.DENY is not decision.action:
        notes = (f"A command that starts now gets {decision.action.value}: {_ONLY_EXISTING}",)
        decision = by_policy
    folder = path.rpartition("/")[0] or "/"
    is_partly_denied = operation not in IN_A_FOLDER and not on_disk.holds_for_all(operation, folder)
    if decision.action is not Action.DENY and is_partly_denied:
        notes = (f"Rules deny {operation.value} for other files in {folder}, {_NO_NEW_NAMES}",)
    # The kernel reads what it executes.
    needed = {operation, Operation.READ} if operation is Operation.EXECUTE else {operation}
    held = _held(held_back(on_disk.rules_about(operation, path), always))

    def failing(rule: FileRule) -> str | None:
        if needed.isdisjoint(rule.operations):
            return None
        if rule.name == decision.rule:
            return _DECIDES
        return OVERRIDES if rule.name in held else "paths"

    tried = ((each, failing(each)) for each in engine.policy.file_rules)
    judgement = _judgement(f"{operation.value} {path}", decision, tried, held)
    return _alone(judgement._replace(notes=notes))


def _alone(judgement: Judgement) -> Explanation:
    return Explanation(judgement.decision, (judgement,))


def _held(found: Iterable[tuple[AnyRule, AnyRule]]) -> Mapping[str, Compiled]:
    """Return the stricter rule of a base, by the name of the rule that would weaken it."""
    return {own.rule.name: base for own, base in found}


def _judgement(
    what: str, decision: Decision, tried: Tried, held: Mapping[str, Compiled]
) -> Judgement:
    """Judge by rules up to the one that decides. No rule is tried before a built-in one."""
    is_built_in = is_below_policies(decision.rule)
    decided_by: Rule | None = None
    passed, unrelated = list[Passed](), 0
    for rule, failing in () if is_built_in else tried:
        if failing == _DECIDES:
            decided_by = rule
            break
        if failing is None:
            unrelated += 1
        else:
            passed.append(Passed(rule.name, rule.place, _why(rule, failing, held)))
    return Judgement(
        what=what,
        answer=decision,
        decision=decision,
        decided_at=decided_by.place if decided_by else None,
        description=decided_by.description if decided_by else "",
        passed=tuple(passed),
        approvals_denied=decided_by is not None and decided_by.decision is not decision.action,
        unrelated=unrelated,
    )


def _why(rule: Rule, failing: str, held: Mapping[str, Compiled]) -> str:
    if failing == OVERRIDES:
        base = held[rule.name]
        stricter = f"{base.rule.name} ({base.decision.action.value})"
        return f"would weaken {stricter}, which it does not list in overrides"
    if failing in _OTHER_REASONS:
        return _OTHER_REASONS[failing]
    wanted = rule_entries(rule)[failing]
    words = list(map(_plainly, wanted if isinstance(wanted, list) else [wanted]))
    more = [f"{len(words) - WORDS_SHOWN} more"] if len(words) > WORDS_SHOWN else []
    return f"needs {failing}: {', '.join([*words[:WORDS_SHOWN], *more]) or 'none'}"


def _plainly(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_plainly(each)}' for key, each in value.items())}}}"
    return shortened(str(value).lower() if isinstance(value, bool) else str(value), _WORD_SHOWN)


def _target(request: SignalRequest) -> str:
    words = [most_specific(request.target_types).value] if request.target_types else []
    words += [request.target_command] if request.target_command else []
    words += [f"(pid {request.target_pid})"] if request.target_pid else []
    return " ".join(words) or TargetType.EXTERNAL.value


def explanation_text(explanation: Explanation) -> str:
    lines: list[str] = []
    for judgement in explanation.judgements:
        lines += [*_judgement_lines(judgement), ""]
    final = explanation.decision
    if final.shadows and any(each.shadows for each in explanation.judgements):
        answer = f"{final.action.value}, by {final.rule}"
        lines.append(f"It shadows {final.shadows} ({PATH_SHADOW_RULE}): {answer}.")
    elif len(explanation.judgements) > 1:
        lines.append(f"The strictest decision applies: {final.action.value}, by {final.rule}.")
    if final.escalate:
        lines.append(f"Then sigwrap raises {final.escalate} and kills the whole process tree.")
    return "\n".join(map(printable, lines)).rstrip()


def _judgement_lines(judgement: Judgement) -> Iterator[str]:
    answer, decision = judgement.answer, judgement.decision
    yield f"{judgement.what}: {answer.action.value}"
    if judgement.shadows:
        yield f"  Comes before {judgement.shadows} in PATH."
    if answer.action is not decision.action:
        alone = decision.action.value
        yield f"  Why: {PATH_SHADOW_RULE}; without it, the rules decide {alone}."
    if judgement.decided_at is None:
        yield f"  Why: {decision.reason}."
    else:
        yield f"  Why: rule {decision.rule} matches ({judgement.decided_at})."
    if judgement.approvals_denied:
        yield "       It needs approval, and the policy has approvals: deny."
    if judgement.description:
        yield f"       {' '.join(judgement.description.split())}"
    yield from (f"  {note}" for note in judgement.notes)
    if answer.message:
        yield f"  Message: {answer.message}"
    if judgement.runs_instead:
        yield f"  Runs instead: {shlex.join(judgement.runs_instead)}"
    if decision.redirect_signal:
        yield f"  Sends instead: {signal_name(decision.redirect_signal)}"
    if judgement.passed:
        yield "  Earlier rules that do not match:"
        width = max(len(each.rule) for each in judgement.passed)
        for each in judgement.passed:
            yield f"    {each.rule:<{width}}  {each.why} (line {each.place.line})"
    if count := judgement.unrelated:
        rules = "1 rule" if count == 1 else f"{count} rules"
        before = " before it" if judgement.decided_at else ""
        yield f"  {rules}{before} {'does' if count == 1 else 'do'} not apply."


class EnvironmentExplanation(NamedTuple):
    policy: str
    removed: tuple[Removed, ...]
    kept: tuple[Kept, ...]
    others: int  # variables that no pattern matches


def explain_environment(policy: Policy, names: Collection[str]) -> EnvironmentExplanation:
    removed, kept = judge_names(policy.env_policy, names)
    others = len(names) - len(removed) - len(kept)
    return EnvironmentExplanation(policy.name, removed, kept, others)


def environment_text(explained: EnvironmentExplanation) -> str:
    policy, removed, kept, others = explained
    if not (removed or kept):
        return f"{policy} removes nothing from this environment."
    lines = [f"{policy} removes these variables:"] if removed else []
    for each in removed:
        by = f"by {each.pattern}" if each.pattern else "always, under every policy"
        lines.append(f"  {each.name}  {by}")
    lines += [f"{policy} keeps these, although a pattern of remove matches:"] if kept else []
    lines += [f"  {each.name}  kept by {each.keep}, matched by {each.pattern}" for each in kept]
    if others:
        lines.append(f"{others} other variable{' stays' if others == 1 else 's stay'}.")
    return "\n".join(map(printable, lines))
