"""Why a request is decided as it is: the rule that decides, and the rules before it; and why a
variable is removed."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from sigwrap.escape import printable
from sigwrap.policy.judge.engine import (
    OVERRIDES,
    CompiledCommandRule,
    CompiledSignalRule,
    Engine,
    Facts,
)
from sigwrap.policy.judge.environment import Kept, Removed, judge_names
from sigwrap.policy.judge.layers import Compiled, weakened
from sigwrap.policy.judge.path_shadow import PATH_SHADOW_RULE, what_was_found
from sigwrap.policy.judge.request import (
    PROTECTS_SIGWRAP,
    CommandRequest,
    Decision,
    Program,
    SignalRequest,
    TargetType,
    most_specific,
)
from sigwrap.policy.judge.rules import CommandRule, Depth, Policy
from sigwrap.policy.judge.signals import signal_name
from sigwrap.policy.judge.subcommand import name_for_subcommands, subcommand
from sigwrap.policy.language.lint import target_name
from sigwrap.policy.problems import Place

WORDS_SHOWN = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Passed:
    rule: str
    place: Place
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """How the rules decide one program, or one signal."""

    what: str
    answer: Decision  # what becomes of it
    decision: Decision  # of the rules: the answer, but for what follows from a shadow
    decided_at: Place | None  # None: no rule matched
    description: str
    passed: tuple[Passed, ...]
    nobody_asked: bool  # the rule asks, and the policy denies instead
    runs_instead: tuple[str, ...]
    shadows: str  # the system's command that it is found before, along PATH
    unrelated: int  # rules before the one that decides, about other programs or signals
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    decision: Decision
    judgements: tuple[Judgement, ...]


def explain_command(engine: Engine, request: CommandRequest) -> Explanation:
    return Explanation(
        decision=engine.decide_command(request),
        judgements=tuple(
            judgement
            for each in request.programs
            if (judgement := _program(engine, each, request)).decided_at or not each.counts_by_name
        ),
    )


def explain_signal(engine: Engine, request: SignalRequest) -> Explanation:
    decision = engine.decide_signal(request)
    passed: list[Passed] = []
    unrelated = 0
    decided_by: CompiledSignalRule | None = None

    def matches(rule: CompiledSignalRule) -> bool:
        return request.signal in rule.rule.signals and rule.matches(request)

    for rule in engine.signal_rules if decision is not PROTECTS_SIGWRAP else ():
        if rule.decision is decision:
            decided_by = rule
            break
        if request.signal not in rule.rule.signals:
            unrelated += 1
            continue
        if rule.matches(request):
            why = why_not_weaker(weakened(rule, engine.signal_rules, matches))
        elif rule.target_matches(request):
            handle = "handle" if rule.rule.handled else "don't handle"
            why = f"is for targets that {handle} the signal"
        else:
            why = f"is for other targets: {', '.join(map(target_name, rule.rule.targets))}"
        passed.append(_passed(rule, why))
    what = f"{signal_name(request.signal)} to {_target(request)}"
    judgement = _judgement(what, decision, decided_by, passed, unrelated)
    return Explanation(decision=decision, judgements=(judgement,))


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentExplanation:
    policy: str
    removed: tuple[Removed, ...]
    kept: tuple[Kept, ...]
    others: int  # that stay


def explain_environment(policy: Policy, names: Collection[str]) -> EnvironmentExplanation:
    judged = judge_names(policy.env_policy, names)
    others = len(names) - len(judged.removed) - len(judged.kept)
    return EnvironmentExplanation(
        policy=policy.name, removed=judged.removed, kept=judged.kept, others=others
    )


def environment_text(explained: EnvironmentExplanation, shown: Callable[[str], str]) -> str:
    """`shown` makes a name fit for a terminal: it may be anything."""
    removed, kept, others = explained.removed, explained.kept, explained.others
    if not (removed or kept):
        return f"{explained.policy} removes nothing from this environment."
    lines: list[str] = []
    if removed:
        lines.append(f"{explained.policy} removes these variables:")
        for each in removed:
            by = f"by {each.pattern}" if each.pattern else "always, under every policy"
            lines.append(f"  {shown(each.name)}  {by}")
    if kept:
        lines.append(f"{explained.policy} keeps these, although a pattern of remove matches:")
        lines += [
            f"  {shown(each.name)}  kept by {each.keep}, matched by {each.pattern}" for each in kept
        ]
    if others:
        lines.append(
            "1 other variable stays." if others == 1 else f"{others} other variables stay."
        )
    return "\n".join(lines)


def explanation_text(explanation: Explanation) -> str:
    lines: list[str] = []
    several = len(explanation.judgements) > 1
    shadows = any(each.shadows for each in explanation.judgements)
    for judgement in explanation.judgements:
        lines += _judgement_lines(judgement)
        lines.append("")
    final = explanation.decision
    if shadows and final.shadows:
        answer = f"{final.action.value}, by {final.rule}"
        lines.append(f"It shadows {final.shadows} ({PATH_SHADOW_RULE}): {answer}.")
    elif several:
        lines.append(f"The strictest decision applies: {final.action.value}, by {final.rule}.")
    if final.escalate:
        lines.append(f"Then sigwrap raises {final.escalate} and kills the whole process tree.")
    return "\n".join(map(printable, lines)).rstrip()


def _judgement_lines(judgement: Judgement) -> list[str]:
    answer, decision = judgement.answer, judgement.decision
    lines = [f"{judgement.what}: {answer.action.value}"]
    if judgement.shadows:
        lines.append(f"  Comes before {judgement.shadows} in PATH.")
    if answer.action is not decision.action:
        alone = decision.action.value
        lines.append(f"  Why: {PATH_SHADOW_RULE}; without it, the rules decide {alone}.")
    if judgement.decided_at is None:
        lines.append(f"  Why: {decision.reason}.")
    else:
        lines.append(f"  Why: rule {decision.rule} matches ({judgement.decided_at}).")
        if judgement.nobody_asked:
            lines.append("       It needs approval, and the policy has approvals: deny.")
    if judgement.description:
        lines.append(f"       {' '.join(judgement.description.split())}")
    lines += [f"  {note}" for note in judgement.notes]
    if answer.message:
        lines.append(f"  Message: {answer.message}")
    if judgement.runs_instead:
        lines.append(f"  Runs instead: {shlex.join(judgement.runs_instead)}")
    if decision.redirect_signal:
        lines.append(f"  Sends instead: {signal_name(decision.redirect_signal)}")
    if judgement.passed:
        lines.append("  Earlier rules that do not match:")
        width = max(len(each.rule) for each in judgement.passed)
        for each in judgement.passed:
            lines.append(f"    {each.rule:<{width}}  {each.why} (line {each.place.line})")
    if judgement.unrelated:
        count = judgement.unrelated
        rules = "1 rule" if count == 1 else f"{count} rules"
        before = " before it" if judgement.decided_at else ""
        lines.append(f"  {rules}{before} {'does' if count == 1 else 'do'} not apply.")
    return lines


def _program(engine: Engine, program: Program, request: CommandRequest) -> Judgement:
    decision = engine.decide_program(program, request)
    facts = Facts(program, request, engine.home)
    passed: list[Passed] = []
    unrelated = 0
    decided_by: CompiledCommandRule | None = None
    for rule in engine.command_rules:
        if rule.decision is decision:
            decided_by = rule
            break
        if not rule.names(facts):
            unrelated += 1
        elif (condition := rule.failing_condition(facts)) == OVERRIDES:
            passed.append(_passed(rule, why_not_weaker(engine.weakened(rule, facts))))
        elif condition is not None:
            passed.append(_passed(rule, _why(rule.rule, condition, facts)))
    called = program.name if program.counts_by_name else program.path
    if program.found:
        called = what_was_found(program, request.cwd)
    what = " ".join([called, *program.argv[1:]])
    redirect = decision.redirect_to
    instead = () if redirect is None else (redirect.command, *redirect.arguments(program.argv))
    judgement = _judgement(what, decision, decided_by, passed, unrelated)
    alone = request._replace(programs=(program,))
    return replace(
        judgement,
        answer=engine.decide_command(alone),
        runs_instead=instead,
        shadows=program.shadows,
    )


def _judgement(
    what: str,
    decision: Decision,
    decided_by: CompiledCommandRule | CompiledSignalRule | None,
    passed: list[Passed],
    unrelated: int,
) -> Judgement:
    return Judgement(
        what=what,
        answer=decision,
        decision=decision,
        decided_at=decided_by.rule.place if decided_by else None,
        description=decided_by.rule.description if decided_by else "",
        passed=tuple(passed),
        nobody_asked=decided_by is not None and decided_by.rule.decision is not decision.action,
        runs_instead=(),
        shadows="",
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


def why_not_weaker(base: Compiled | None) -> str:
    if base is None:
        return "would weaken a rule of the base"
    name, action = base.rule.name, base.decision.action.value
    return f"would weaken {name} ({action}), which it does not list in overrides"


def _some(separator: str, words: Sequence[str]) -> str:
    more = len(words) - WORDS_SHOWN
    shown = separator.join(words[:WORDS_SHOWN])
    return f"{shown}{separator}{more} more" if more > 0 else shown


def _passed(rule: CompiledCommandRule | CompiledSignalRule, why: str) -> Passed:
    return Passed(rule=rule.rule.name, place=rule.rule.place, why=why)


def _target(request: SignalRequest) -> str:
    words = [most_specific(request.target_types).value] if request.target_types else []
    words += [request.target_command] if request.target_command else []
    words += [f"(pid {request.target_pid})"] if request.target_pid else []
    return " ".join(words) or TargetType.EXTERNAL.value
