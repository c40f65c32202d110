"""Explain a decision: the rule that decides, the rules before it, and removed variables."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from sigwrap.escape import printable
from sigwrap.policy.judge.engine import (
    OVERRIDES,
    CompiledCommandRule,
    CompiledSignalRule,
    Engine,
    Facts,
)
from sigwrap.policy.judge.environment import Kept, Removed, judge_names
from sigwrap.policy.judge.files import CGROUP_RULE, IN_A_FOLDER, PARTED_RULE, FileRules
from sigwrap.policy.judge.layers import Compiled, always, held_back, weakened
from sigwrap.policy.judge.network import Direction, Endpoint
from sigwrap.policy.judge.path_shadow import PATH_SHADOW_RULE, what_was_found
from sigwrap.policy.judge.request import (
    PROTECTS_SIGWRAP,
    Action,
    CommandRequest,
    Decision,
    Operation,
    Program,
    SignalRequest,
    TargetType,
    most_specific,
)
from sigwrap.policy.judge.rules import CommandRule, Depth, FileRule, NetworkRule, Policy, Rule
from sigwrap.policy.judge.signals import signal_name
from sigwrap.policy.judge.subcommand import name_for_subcommands, subcommand
from sigwrap.policy.language.lint import target_name
from sigwrap.policy.problems import Place
from sigwrap.tuples import NamedTuple

WORDS_SHOWN = 5

_DONE = {
    Operation.READ: "read",
    Operation.WRITE: "written",
    Operation.CREATE: "created",
    Operation.DELETE: "deleted",
    Operation.EXECUTE: "executed",
}
_OTHER_FILES = "is for other files"
_CGROUPS = "through cgroup files, a process can stop and kill other processes"

AnyRule = TypeVar("AnyRule", CompiledCommandRule, CompiledSignalRule, FileRule, NetworkRule)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    """A rule before the deciding one, and why it does not decide."""

    rule: str
    place: Place
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The decision of the rules about one program, signal, file or connection."""

    what: str
    answer: Decision  # the final decision
    decision: Decision  # of the rules; `answer` differs if the program shadows another
    decided_at: Place | None  # None: no rule matched
    description: str
    passed: tuple[Passed, ...]
    approvals_denied: bool = False  # the rule asks for approval, and the policy denies instead
    runs_instead: tuple[str, ...] = ()
    shadows: str = ""  # the system command that it comes before in PATH
    unrelated: int  # rules before the deciding one that are about something else
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    decision: Decision
    judgements: tuple[Judgement, ...]


def explain_command(engine: Engine, request: CommandRequest) -> Explanation:
    judged = [_program(engine, each, request) for each in request.programs]
    shown = [
        judgement
        for program, judgement in zip(request.programs, judged, strict=True)
        if judgement.decided_at or not program.counts_by_name
    ]
    return Explanation(decision=engine.decide_command(request), judgements=tuple(shown))


def explain_signal(engine: Engine, request: SignalRequest) -> Explanation:
    decision = engine.decide_signal(request)

    def matches(rule: CompiledSignalRule) -> bool:
        return request.signal in rule.rule.signals and rule.matches(request)

    def why(rule: CompiledSignalRule) -> str | None:
        if request.signal not in rule.rule.signals:
            return None
        if rule.matches(request):
            return _why_not_weaker(weakened(rule, engine.signal_rules, matches))
        if rule.target_matches(request):
            handle = "handle" if rule.rule.handled else "don't handle"
            return f"is for targets that {handle} the signal"
        return f"is for other targets: {', '.join(map(target_name, rule.rule.targets))}"

    what = f"{signal_name(request.signal)} to {_target(request)}"
    rules = () if decision is PROTECTS_SIGWRAP else engine.signal_rules
    judgement = _judgement(what, decision, rules, lambda rule: rule.decision is decision, why)
    return Explanation(decision=decision, judgements=(judgement,))


def explain_network(engine: Engine, endpoint: Endpoint) -> Explanation:
    decision = engine.network.decide(endpoint)
    matching = held_back(engine.network.rules_about(endpoint), lambda each: each.matches(endpoint))
    held = {own.rule.name: base for own, base in matching}

    def why(rule: NetworkRule) -> str | None:
        if rule.direction != endpoint.direction.value:
            return None
        if rule.name in held:
            return _why_not_weaker(held[rule.name])
        if rule.protocol not in ("", endpoint.protocol.value):
            return f"is for {rule.protocol}"
        if rule.ports and endpoint.port not in rule.ports:
            return f"is for other ports: {', '.join(map(str, rule.ports))}"
        return f"is for other destinations: {', '.join(rule.destinations)}"

    verb = "listen on" if endpoint.direction is Direction.BIND else "connect to"
    what = f"{verb} {endpoint} ({endpoint.protocol.value})"
    rules = engine.policy.network_rules
    judgement = _judgement(what, decision, rules, lambda rule: rule.name == decision.rule, why)
    return Explanation(decision=decision, judgements=(judgement,))


def explain_file(
    engine: Engine, held: FileRules, operation: Operation, path: str, given: str, *, exists: bool
) -> Explanation:
    """Explain access to the real path of a file, which the policy may name by the path `given`.

    `held` are the rules as the kernel would enforce them on this disk. They leave out denied files
    that do not exist, so for an absent file the policy alone decides, as in its `tests:`.
    """
    policy = engine.policy
    decision, notes = held.decide(operation, path), list[str]()
    by_policy = engine.files.decide(operation, given)
    if decision.rule == CGROUP_RULE:
        decision = decision._replace(reason=_CGROUPS)
    elif not exists and by_policy.action is Action.DENY is not decision.action:
        notes.append(
            f"A command that starts now gets {decision.action.value}: sigwrap can deny reading "
            "only files that exist when the command starts."
        )
        decision = by_policy
    if decision.action is not Action.DENY:
        notes += _file_notes(held, operation, path, exists=exists)
    # The kernel reads what it executes.
    needed = {operation, Operation.READ} if operation is Operation.EXECUTE else {operation}
    matching = held_back(held.rules_about(operation, path), always)
    stricter = {own.rule.name: base for own, base in matching}

    def why(rule: FileRule) -> str | None:
        if needed.isdisjoint(rule.operations):
            return None
        return _why_not_weaker(stricter[rule.name]) if rule.name in stricter else _OTHER_FILES

    rules = () if decision.rule in (CGROUP_RULE, PARTED_RULE) else policy.file_rules
    what = f"{operation.value} {path}"
    judgement = _judgement(what, decision, rules, lambda rule: rule.name == decision.rule, why)
    judgement = replace(judgement, notes=tuple(notes))
    return Explanation(decision=decision, judgements=(judgement,))


def _file_notes(
    files: FileRules, operation: Operation, path: str, *, exists: bool
) -> Iterator[str]:
    folder = path.rpartition("/")[0] or "/"
    if operation in IN_A_FOLDER or files.holds_for_all(operation, folder):
        return
    some = f"Only some files in {folder} can be {_DONE[operation]}"
    if exists:
        yield f"{some}. A file that gets this name after the command started cannot."
    else:
        yield f"It does not exist. {some}: files that exist when the command starts."


class EnvironmentExplanation(NamedTuple):
    policy: str
    removed: tuple[Removed, ...]
    kept: tuple[Kept, ...]
    others: int  # variables that no pattern matches


def explain_environment(policy: Policy, names: Collection[str]) -> EnvironmentExplanation:
    judged = judge_names(policy.env_policy, names)
    others = len(names) - len(judged.removed) - len(judged.kept)
    return EnvironmentExplanation(policy.name, judged.removed, judged.kept, others)


def environment_text(explained: EnvironmentExplanation) -> str:
    policy, removed, kept, others = explained
    if not (removed or kept):
        return f"{policy} removes nothing from this environment."
    lines: list[str] = []
    if removed:
        lines.append(f"{policy} removes these variables:")
    for each in removed:
        by = f"by {each.pattern}" if each.pattern else "always, under every policy"
        lines.append(f"  {printable(each.name)}  {by}")
    if kept:
        lines.append(f"{policy} keeps these, although a pattern of remove matches:")
    for one in kept:
        by = f"kept by {one.keep}, matched by {one.pattern}"
        lines.append(f"  {printable(one.name)}  {by}")
    if others:
        stay = "1 other variable stays." if others == 1 else f"{others} other variables stay."
        lines.append(stay)
    return "\n".join(lines)


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
        before = " before it" if judgement.decided_at else ""
        yield (
            f"  1 rule{before} does not apply."
            if count == 1
            else f"  {count} rules{before} do not apply."
        )


def _program(engine: Engine, program: Program, request: CommandRequest) -> Judgement:
    decision = engine.decide_program(program, request)
    facts = Facts(program, request, engine.home)

    def why(rule: CompiledCommandRule) -> str | None:
        condition = rule.failing_condition(facts) if rule.names(facts) else None
        if condition == OVERRIDES:
            return _why_not_weaker(engine.weakened(rule, facts))
        return None if condition is None else _why(rule.rule, condition, facts)

    called = program.name if program.counts_by_name else program.path
    if program.found:
        called = what_was_found(program, request.cwd)
    redirect = decision.redirect_to
    what = " ".join([called, *program.argv[1:]])
    rules = engine.command_rules
    return replace(
        _judgement(what, decision, rules, lambda rule: rule.decision is decision, why),
        answer=engine.decide_command(request._replace(programs=(program,))),
        runs_instead=(
            () if redirect is None else (redirect.command, *redirect.arguments(program.argv))
        ),
        shadows=program.shadows,
    )


def _judgement(
    what: str,
    decision: Decision,
    rules: Iterable[AnyRule],
    decides: Callable[[AnyRule], bool],
    why: Callable[[AnyRule], str | None],
) -> Judgement:
    """Judge by rules up to the one that decides. `why` returns None if a rule is unrelated."""
    decided_by: Rule | None = None
    passed, unrelated = list[Passed](), 0
    for each in rules:
        rule: Rule = each if isinstance(each, FileRule | NetworkRule) else each.rule
        if decides(each):
            decided_by = rule
            break
        reason = why(each)
        if reason is None:
            unrelated += 1
        else:
            passed.append(Passed(rule=rule.name, place=rule.place, why=reason))
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


def _why(rule: CommandRule, condition: str, facts: Facts) -> str:
    match condition:
        case "depth":
            least, last = rule.depth or Depth()
            most = "or deeper" if last is None else f"to {last}"
            return f"is for depth {least} {most} (this is depth {facts.request.depth})"
        case "subcommands":
            wanted = _some(", ", [word or "none" for word in rule.subcommands])
            found = subcommand(
                name_for_subcommands(facts.basename, facts.program.name), facts.program.argv
            )
            return f"is for the subcommands {wanted} (this is {found or 'none'})"
        case "paths" | "sources":
            paths = rule.paths if condition == "paths" else rule.sources
            return f"is for the paths {_some(', ', paths)}"
        case "outside":
            return f"is for paths outside {_some(', ', rule.outside)}"
        case "args":
            return f"is for the arguments {_some(' ', rule.args or ()) or 'none'}"
        case "flags":
            return f"needs the flags {_some(' ', rule.flags)}"
        case "args_patterns":
            return f"needs an argument that matches {_some(' or ', rule.args_patterns)}"
        case "truncated":
            wanted = "too long" if rule.truncated else "short enough"
            return f"is for arguments that are {wanted} to judge"
        case "traced":
            return f"is for callers that are {'' if rule.traced else 'not '}traced"
        case "elsewhere":
            return "allows, but the file is on a mount outside sigwrap's namespace"
        case "commands":
            return f"allows by name, but {facts.program.name} is only the name of a link"
        case "system_file":
            return f"is for {'system files' if rule.system_file else 'files not of the system'}"
        case "loads_code":
            has = "with" if rule.loads_code else "without"
            return f"is for programs {has} a variable that loads code"
        case "not_sha256":
            return "is for files with a digest that it does not list"
        case "sha256":
            return "is for files with another digest"
        case _:
            return f"has a condition that does not hold: {condition}"


def _why_not_weaker(base: Compiled | None) -> str:
    if base is None:
        return "would weaken a rule of the base"
    name, action = base.rule.name, base.decision.action.value
    return f"would weaken {name} ({action}), which it does not list in overrides"


def _some(separator: str, words: Sequence[str]) -> str:
    more = len(words) - WORDS_SHOWN
    shown = separator.join(words[:WORDS_SHOWN])
    return f"{shown}{separator}{more} more" if more > 0 else shown


def _target(request: SignalRequest) -> str:
    words = [most_specific(request.target_types).value] if request.target_types else []
    words += [request.target_command] if request.target_command else []
    words += [f"(pid {request.target_pid})"] if request.target_pid else []
    return " ".join(words) or TargetType.EXTERNAL.value
