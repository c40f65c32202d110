"""Decide every recorded request again, under another policy, and collect what differs.

A log does not say what would have run after a difference: a command that is denied starts no other.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

from sigwrap.events import DECISION_TYPES, EXEC_TYPES, Event, Payload, kind_of, text
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.network import reaching
from sigwrap.policy.judge.recorded import command_request, signal_request
from sigwrap.policy.judge.request import Action, most_specific
from sigwrap.policy.judge.rules import Policy
from sigwrap.policy.judge.signals import ALL, signal_name
from sigwrap.policy.judge.subcommand import name_for_subcommands, subcommand
from sigwrap.policy.judge.tools import has_subcommands
from sigwrap.policy.tools.draft import Together
from sigwrap.policy.tools.suggest import Suggester, Suggestion
from sigwrap.report.check.decisions import NoPolicy, Redecider, recorded_policy, replaced_otherwise
from sigwrap.report.folds.attention import what as shown
from sigwrap.text import printable

_MOST_DIFFERENCES = 1_000
_LONGEST_NAME = 80
_LONGEST_EXAMPLE = 200


class Outcome(Enum):
    """What becomes of a request, the most important first."""

    DENIED = "denied"
    ASKED = "asked"
    REPLACED = "replaced"
    ABSORBED = "absorbed"
    LET_THROUGH = "let through"


_OUTCOMES = {
    Action.ALLOW: Outcome.LET_THROUGH,
    Action.AUDIT: Outcome.LET_THROUGH,
    Action.APPROVE: Outcome.ASKED,
    Action.REDIRECT: Outcome.REPLACED,
    Action.ABSORB: Outcome.ABSORBED,
    Action.DENY: Outcome.DENIED,
}
_RECORDED = {action.value: outcome for action, outcome in _OUTCOMES.items()}


@dataclass(slots=True, kw_only=True)
class Difference:
    """Requests for the same thing that would come out otherwise in the same way."""

    kind: str  # exec, signal or connection
    what: str  # the program with its subcommand, the signal and its target, or the destination
    was: Outcome
    was_by: str
    would_be: Outcome
    would_be_by: str
    count: int = 0
    first_seq: int
    example: str  # printable
    # Rules that would let it through, if it would be denied or need approval.
    rules: tuple[Suggestion, ...] = ()
    rules_for: int = 0  # how many of these requests
    why_not: str = ""  # why the first of the others has no rule


@dataclass(slots=True, kw_only=True)
class WhatIf:
    policy: str
    decisions: int = 0
    differ: int = 0
    by_other_rule: int = 0  # decisions that are the same by another rule
    own: int = 0  # decisions of built-in rules, which no policy changes
    differences: tuple[Difference, ...] = ()  # the most important first
    left_out: int = 0  # requests that differ beyond the kinds that are kept
    doubtful: dict[str, int] = field(default_factory=dict)  # how many, by the reason


class WhatIfFold:
    def __init__(self, policy: Policy) -> None:
        self._engine = Engine(policy)
        self._redecider = Redecider(self._engine, None)
        self._suggester = Suggester(self._engine)
        self._recorded: Redecider | None = None
        self._found = WhatIf(policy=policy.name)
        self._started = 0
        self._groups: dict[tuple[object, ...], tuple[Difference, Together]] = {}

    def add(self, event: Event) -> None:
        if event.seq == 1 and event.type == "session_started":
            self._start(event.payload)
        elif event.type in DECISION_TYPES and event.payload.get("retry") is not True:
            self._decide(event)

    def result(self) -> WhatIf:
        for difference, found in self._groups.values():
            difference.rules = tuple(map(self._suggester.suggestion, found.rules))
            difference.rules_for, difference.why_not = found.requests, found.why_not
        order = list(Outcome)
        differences = sorted(
            (difference for difference, _ in self._groups.values()),
            key=lambda each: (order.index(each.would_be), -each.count, each.first_seq),
        )
        return replace(self._found, differences=tuple(differences))

    def _start(self, started: Payload) -> None:
        try:
            recorded = recorded_policy(started)
        except NoPolicy:
            return
        self._redecider = Redecider(self._engine, recorded)
        self._recorded = Redecider(Engine(recorded), recorded)

    def _decide(self, event: Event) -> None:
        self._found.decisions += 1
        again = self._redecider.decide(event, self._started)
        if isinstance(again, str):
            self._found.own += 1
            self._started += event.type in EXEC_TYPES and event.type != "exec_denied"
            return
        decision = again.decision
        self._started += event.type in EXEC_TYPES and decision.action is not Action.DENY
        if again.doubt:
            doubtful = self._found.doubtful
            doubtful[again.doubt] = doubtful.get(again.doubt, 0) + 1
        was, would_be = self._was(event), _OUTCOMES[decision.action]
        rule, kind = text(event.payload.get("rule_name")), kind_of(event.type)
        if was is would_be and not replaced_otherwise(event.payload, decision):
            self._found.by_other_rule += rule != decision.rule
            return
        self._found.differ += 1
        what = _WHAT[kind](event.payload)
        key = (kind, what, was, rule, would_be, decision.rule)
        if key not in self._groups:
            if len(self._groups) >= _MOST_DIFFERENCES:
                self._found.left_out += 1
                return
            difference = Difference(
                kind=kind,
                what=what,
                was=was,
                was_by=rule,
                would_be=would_be,
                would_be_by=decision.rule,
                first_seq=event.seq,
                example=_example(event)[:_LONGEST_EXAMPLE],
            )
            self._groups[key] = difference, Together()
        difference, rules = self._groups[key]
        difference.count += 1
        if would_be in (Outcome.DENIED, Outcome.ASKED):
            as_decided = event._replace(payload={**event.payload, "rule_name": decision.rule})
            rules.add(self._suggester.drafts(as_decided))

    def _was(self, event: Event) -> Outcome:
        """Return the recorded outcome.

        A denial can be that of an approver, or of a replacement that was missing. The outcome is
        then the one that the recorded policy wanted.
        """
        was = _RECORDED.get(text(event.payload.get("decision")), Outcome.DENIED)
        if was is Outcome.DENIED and self._recorded is not None:
            then = self._recorded.decide(event, 0)
            if not isinstance(then, str) and then.decision.rule == event.payload.get("rule_name"):
                return _OUTCOMES[then.decision.action]
        return was


def _example(event: Event) -> str:
    get = event.payload.get
    who = "" if event.type in EXEC_TYPES else text(get("source_cmd")) or text(get("comm"))
    return f"{printable(who)}, {shown(event)}" if who else shown(event)


def _command(payload: Payload) -> str:
    """Return the program's name, with its subcommand if it has some."""
    program = command_request(payload).programs[0]
    name = name_for_subcommands(program.path.rpartition("/")[2], program.name)
    words = [program.name]
    if has_subcommands(name):
        words.append(subcommand(name, program.argv))
    return " ".join(filter(None, words))[:_LONGEST_NAME]


def _signal(payload: Payload) -> str:
    request = signal_request(payload)
    name = signal_name(request.signal) if request.signal in ALL else f"signal {request.signal}"
    types = request.target_types
    return f"{name} to {most_specific(types).value if types else 'unknown'}"


def _destination(payload: Payload) -> str:
    destination = text(payload.get("destination")) or "?"
    return reaching(text(payload.get("direction")), destination)[:_LONGEST_EXAMPLE]


_WHAT = {"exec": _command, "signal": _signal, "connection": _destination}
