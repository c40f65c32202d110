"""What a policy may have decided, where some of the words it saw are not in the log.

A word that was masked, or cut, can have been any. But a rule that asks for no words decides all the
same, and one that is about another program decides nothing: so an edited decision is often found.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sigwrap.events import Payload
from sigwrap.policy.judge.engine import CompiledCommandRule, Engine, Facts
from sigwrap.policy.judge.request import (
    DEFAULT_RULE,
    STRICTNESS,
    Action,
    CommandRequest,
    Decision,
    Program,
)
from sigwrap.report.check.telling import MASK, lines_of
from sigwrap.store.bounds import CUT, EVENT_LIMIT, json_size

MASKED = "possible secrets in them were masked"
TOO_LONG = "they were too long for the log and were cut"

_VERSION_MEMBER = 64  # more than it takes, in what the writer had found too long
_NOT_OF_WORDS = frozenset({"programs", "path", "cwd", "shadows"})


def untold(payload: Payload) -> str:
    """Why the same need not come out. Empty also where it only says so: a word that was masked has
    the mask, and what was cut had been too long."""
    if CUT in payload:
        return TOO_LONG if was_cut(payload) else ""
    has_mask = payload.get("masked") is True and any(map(_has_mask, lines_of(payload)))
    return MASKED if has_mask else ""


def was_cut(payload: Payload) -> bool:
    """By what it says itself of the lengths of the fields that were cut."""
    cut = payload.get(CUT)
    if not isinstance(cut, dict):
        return False
    whole = json_size({name: each for name, each in payload.items() if name != CUT})
    for name, entry in cut.items():
        length = entry.get("json") if isinstance(entry, dict) else None
        if type(length) is not int or name not in payload:
            return False
        whole += length - json_size(payload[name])
    return whole + _VERSION_MEMBER > EVENT_LIMIT


def possible_decisions(
    engine: Engine, request: CommandRequest, here: int, payload: Payload
) -> list[Decision] | None:
    """None where it can be any: not only arguments are missing, or more than a rule decides."""
    programs = request.programs
    cut = payload.get(CUT)
    lacks_more = isinstance(cut, dict) and not _NOT_OF_WORDS.isdisjoint(cut)
    if lacks_more or any(each.shadows or MASK in each.path + each.name for each in programs):
        return None
    is_cut = cut is not None
    possible = _strictest_of(engine, request, programs, is_cut=is_cut)
    if here < len(programs):
        possible += _strictest_of(engine, request, programs[:here], is_cut=is_cut)
    if request.traced:
        possible += _strictest_of(engine, request, programs, is_cut=is_cut)
    return possible


def _strictest_of(
    engine: Engine, request: CommandRequest, programs: Sequence[Program], *, is_cut: bool
) -> list[Decision]:
    """As Engine.decide_command has it, of each choice."""
    first, *others = programs
    strictest = _of_program(engine, first, request, is_cut=is_cut)
    for program in others:
        decisions = _of_program(engine, program, request, is_cut=is_cut)
        if program.counts_by_name and any(each.rule == DEFAULT_RULE for each in decisions):
            decisions += strictest
        strictest = _distinct(
            other if STRICTNESS[other.action] > STRICTNESS[one.action] else one
            for one in strictest
            for other in decisions
        )
    return strictest


def _of_program(
    engine: Engine, program: Program, request: CommandRequest, *, is_cut: bool
) -> list[Decision]:
    exact = engine.decide_program(program, request)
    if not (is_cut or _has_mask(program.argv)):
        return [exact]
    found = []
    facts = Facts(program, request, engine.home)
    for rule in engine.command_rules:
        asks_for_nothing_else = _without_words(rule)
        if not (rule.names(facts) and asks_for_nothing_else.holds(facts)):
            continue
        found.append(rule.decision)
        if asks_for_nothing_else.rule == rule.rule and not rule.rule.layer:
            return found
    # The engine's default is no rule's: a command that no rule can name gets it.
    return [*found, exact if exact.rule == DEFAULT_RULE else _default(engine)]


def _default(engine: Engine) -> Decision:
    action = engine.policy.default_command
    if action is Action.APPROVE and not engine.policy.asks:
        action = Action.DENY
    return Decision(action=action, rule=DEFAULT_RULE, reason="")


def _without_words(rule: CompiledCommandRule) -> CompiledCommandRule:
    """A file's content, and what loads code, was looked at only where the words had led to it."""
    return CompiledCommandRule(
        rule.rule._replace(
            args=None,
            flags=(),
            args_patterns=(),
            subcommands=(),
            paths=(),
            sources=(),
            truncated=None,
            loads_code=None,
            sha256=frozenset(),
            not_sha256=frozenset(),
        )
    )


def _distinct(decisions: Iterable[Decision]) -> list[Decision]:
    return list({(each.rule, each.action): each for each in decisions}.values())


def _has_mask(argv: Iterable[str]) -> bool:
    return any(MASK in word for word in argv)
