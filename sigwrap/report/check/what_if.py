"""Every recorded decision again, under another policy: what would differ?

That is how a policy is tried before it is enforced. What the log can't say is what would have run
after a difference: a command that is denied starts no other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum

from sigwrap.escape import shell_words
from sigwrap.events import (
    CONNECTION_TYPES,
    EXEC_TYPES,
    SIGNAL_TYPES,
    Event,
    Payload,
    kind_of,
    number,
    text,
    texts,
)
from sigwrap.policy.judge.engine import Engine, Facts
from sigwrap.policy.judge.limits import exceeded, used_up
from sigwrap.policy.judge.network import Direction, NetworkRules, Protocol, reaching
from sigwrap.policy.judge.recorded import (
    command_request,
    connection_request,
    crowd,
    programs_here,
    signal_request,
)
from sigwrap.policy.judge.request import (
    DEFAULT_RULE,
    Action,
    AskedFact,
    CommandRequest,
    Decision,
    most_specific,
)
from sigwrap.policy.judge.rules import CommandRule, NetworkRule, Policy, SignalRule
from sigwrap.policy.judge.signals import ALL, signal_name
from sigwrap.policy.judge.subcommand import has_subcommands, name_for_subcommands, subcommand
from sigwrap.policy.tools.again import Again
from sigwrap.policy.tools.draft import Draft, Together
from sigwrap.policy.tools.suggest import Suggester, Suggestion
from sigwrap.report.check.recorded_policy import NoPolicy, recorded_policy
from sigwrap.report.check.reproduce import BUILT_IN
from sigwrap.report.check.whatever_words import untold

NOT_RECORDED = "the log lacks facts that the other policy needs"

_MOST_DIFFERENCES = 1_000
_LONGEST_NAME = 80
_LONGEST_EXAMPLE = 200


class Outcome(Enum):
    """What becomes of a request, in the order in which one would look at it."""

    DENIED = "denied"
    ASKED = "asked"
    REPLACED = "replaced"
    ABSORBED = "absorbed"
    LET_THROUGH = "let through"


_OUTCOMES = {
    "allow": Outcome.LET_THROUGH,
    "audit": Outcome.LET_THROUGH,
    "approve": Outcome.ASKED,
    "redirect": Outcome.REPLACED,
    "absorb": Outcome.ABSORBED,
    "deny": Outcome.DENIED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """So many requests for the same that would come out otherwise in the same way."""

    kind: str  # exec, signal or connection
    what: str  # the program with its subcommand, the signal and its target, or the destination
    was: Outcome
    was_by: str
    would_be: Outcome
    would_be_by: str
    count: int
    first_seq: int
    example: str
    # What would let it through, where that is denied or asked about.
    rules: tuple[Suggestion, ...] = ()
    rules_for: int = 0  # of these requests
    why_not: str = ""  # of the first of the others


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatIf:
    policy: str
    decisions: int
    differ: int
    by_other_rule: int  # of those that come out the same
    own: int  # sigwrap's own decisions, which no policy changes
    differences: tuple[Difference, ...]  # to act on first, first
    left_out: int  # requests that differ, in no difference: there were too many kinds
    doubtful: dict[str, int] = field(default_factory=dict)  # how many, by the reason


@dataclass(slots=True)
class _Judged:
    """What becomes of equal requests."""

    decision: Decision
    doubt: str = ""  # what makes it doubtful
    # The rule that would let it through, or why none can: once somebody needs it.
    drafted: tuple[Draft, ...] | str | None = None


class WhatIfFold:
    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._engine = Engine(policy)
        self._suggester = Suggester(self._engine)
        self._pins = [
            each for each in self._engine.command_rules if each.rule.sha256 or each.rule.not_sha256
        ]
        self._then = _Then(None)
        self._decisions = self._differ = self._by_other_rule = self._own = self._left_out = 0
        self._gone_on = 0
        self._doubtful: Counter[str] = Counter()
        self._again = Again(self._judged)
        self._found: dict[tuple[object, ...], Difference] = {}
        self._together: dict[tuple[object, ...], Together] = {}

    def add(self, event: Event) -> None:
        if event.seq == 1 and event.type == "session_started":
            self._then = _Then.of(event.payload)
        elif event.payload.get("retry") is True:
            return
        elif event.type in EXEC_TYPES:
            self._compare_exec(event)
        elif event.type in SIGNAL_TYPES or event.type in CONNECTION_TYPES:
            self._compare_other(event)

    def result(self) -> WhatIf:
        order = {each: position for position, each in enumerate(Outcome)}
        return WhatIf(
            policy=self._policy.name,
            decisions=self._decisions,
            differ=self._differ,
            by_other_rule=self._by_other_rule,
            own=self._own,
            differences=tuple(
                sorted(
                    (self._with_rules(*each) for each in self._found.items()),
                    key=lambda each: (order[each.would_be], -each.count, each.first_seq),
                )
            ),
            left_out=self._left_out,
            doubtful=dict(self._doubtful),
        )

    def _compare_exec(self, event: Event) -> None:
        if _is_own(event.payload):
            self._count_own()
            self._gone_on += event.type != "exec_denied"
            return
        judged = self._again.decided(event)
        if judged.decision.action is not Action.DENY:
            limit = used_up(self._policy.limits, self._gone_on)
            judged = judged if limit is None else _Judged(limit)
        goes_on = judged.decision.action is not Action.DENY
        self._gone_on += goes_on
        self._compare(event, judged)

    def _compare_other(self, event: Event) -> None:
        if _is_own(event.payload):
            self._count_own()
        else:
            self._compare(event, self._again.decided(event))

    def _judged(self, event: Event) -> _Judged:
        if event.type in CONNECTION_TYPES:
            return self._judged_connection(event.payload)
        is_exec = event.type in EXEC_TYPES
        return self._judged_exec(event.payload) if is_exec else self._judged_signal(event.payload)

    def _judged_exec(self, payload: Payload) -> _Judged:
        request, unknown = _with_findings(command_request(payload))
        limit = exceeded(self._policy.limits, request.depth, crowd(payload))
        if limit is not None:
            return _Judged(limit)
        decision = self._engine.decide_exec(request, programs_here(payload, request))
        loading = not self._then.asked_for_code and any(each.answer is not None for each in unknown)
        return _Judged(decision, NOT_RECORDED if loading or self._may_be_pinned(request) else "")

    def _may_be_pinned(self, request: CommandRequest) -> bool:
        """By a digest that nobody has taken then."""
        return any(
            rule.names(Facts(program, request))
            for program in request.programs
            if not (program.sha256 or program.counts_by_name or program.missing)
            for rule in self._pins
        )

    def _judged_signal(self, payload: Payload) -> _Judged:
        handled = AskedFact(lambda: payload.get("target_handles") is True)
        decision = self._engine.decide_signal(signal_request(payload)._replace(handled=handled))
        was_asked = "target_handles" in payload or handled.answer is None
        return _Judged(decision, "" if was_asked else NOT_RECORDED)

    def _judged_connection(self, payload: Payload) -> _Judged:
        """Only those names of a host are recorded that the recorded policy has."""
        endpoint = connection_request(payload)
        decision = self._engine.network.decide(endpoint)
        unknown = self._engine.network.names - self._then.hosts
        is_told = endpoint.protocol is Protocol.UNIX or endpoint.direction is Direction.BIND
        return _Judged(decision, "" if is_told or not unknown else NOT_RECORDED)

    def _count_own(self) -> None:
        self._decisions += 1
        self._own += 1

    def _compare(self, event: Event, judged: _Judged) -> None:
        self._decisions += 1
        decision = judged.decision
        rule = text(event.payload.get("rule_name"))
        kind = kind_of(event.type)
        was = self._then.outcome(event, kind, rule)
        would_be = _OUTCOMES[decision.action.value]
        if doubt := judged.doubt or untold(event.payload):
            self._doubtful[doubt] += 1
        if was is would_be and not _replaced_otherwise(event.payload, decision):
            self._by_other_rule += rule != decision.rule
            return
        self._differ += 1
        what = _WHAT[kind](event.payload)
        key = (kind, what, was, rule, would_be, decision.rule)
        found = self._found.get(key)
        if found is not None:
            self._found[key] = replace(found, count=found.count + 1)
        elif len(self._found) < _MOST_DIFFERENCES:
            example = _EXAMPLE[kind](event.payload)
            self._found[key] = Difference(
                kind=kind,
                what=what,
                was=was,
                was_by=rule,
                would_be=would_be,
                would_be_by=decision.rule,
                count=1,
                first_seq=event.seq,
                example=example,
            )
        else:
            self._left_out += 1
            return
        if would_be in (Outcome.DENIED, Outcome.ASKED):
            if judged.drafted is None:
                judged.drafted = self._drafted(event, decision.rule)
            if key not in self._together:
                self._together[key] = Together()
            self._together[key].add(judged.drafted)

    def _drafted(self, event: Event, rule: str) -> tuple[Draft, ...] | str:
        as_decided = event._replace(payload={**event.payload, "rule_name": rule})
        return self._suggester.drafts(as_decided)

    def _with_rules(self, key: tuple[object, ...], difference: Difference) -> Difference:
        together = self._together.get(key)
        if together is None:
            return difference
        return replace(
            difference,
            rules=tuple(map(self._suggester.suggestion, together.rules)),
            rules_for=together.requests,
            why_not=together.why_not,
        )


def _is_own(payload: Payload) -> bool:
    """A decision of sigwrap's, which no policy changes."""
    rule = text(payload.get("rule_name"))
    return payload.get("stub") is True or (rule.startswith(BUILT_IN) and rule != DEFAULT_RULE)


class _Then:
    """The recorded policy, as far as it is known. A request that it asks about, replaces or lets
    through may have been denied all the same: by who was asked, for a replacement that was not
    there, with a group of which another member may not be reached."""

    def __init__(self, policy: Policy | None) -> None:
        self.asked_for_code = policy is not None and any(
            each.loads_code is not None for each in policy.command_rules
        )
        self.hosts = frozenset[str]()  # of which that policy asked for the addresses
        self._outcomes: dict[tuple[str, str], Outcome] = {}
        if policy is not None:
            self._learn("exec", policy.command_rules, asks=policy.asks)
            self._learn("signal", policy.signal_rules, asks=policy.asks)
            self._learn("connection", policy.network_rules, asks=policy.asks)
            self.hosts = NetworkRules.of(policy).names

    def _learn(
        self, kind: str, rules: Sequence[CommandRule | SignalRule | NetworkRule], *, asks: bool
    ) -> None:
        for rule in rules:
            denies = rule.decision is Action.APPROVE and not asks
            outcome = Outcome.DENIED if denies else _OUTCOMES[rule.decision.value]
            known = self._outcomes.setdefault((kind, rule.name), outcome)
            if known is not outcome:  # of two rules with one name, nobody knows which it was
                self._outcomes[kind, rule.name] = Outcome.DENIED

    @classmethod
    def of(cls, started: Payload) -> _Then:
        try:
            return cls(recorded_policy(started))
        except NoPolicy:
            return cls(None)

    def outcome(self, event: Event, kind: str, rule: str) -> Outcome:
        recorded = _OUTCOMES.get(text(event.payload.get("decision")), Outcome.DENIED)
        return (
            self._outcomes.get((kind, rule), recorded) if recorded is Outcome.DENIED else recorded
        )


def _with_findings(request: CommandRequest) -> tuple[CommandRequest, tuple[AskedFact, ...]]:
    """And those that tell, by having been asked for, that the log doesn't have the answer."""
    unknown = tuple(AskedFact(lambda: False) for _ in request.programs)
    programs = tuple(
        program if program.loads_code else program._replace(loads_code=finding)
        for program, finding in zip(request.programs, unknown, strict=True)
    )
    return request._replace(programs=programs), unknown


def _replaced_otherwise(payload: Payload, decision: Decision) -> bool:
    if decision.redirect_to is not None:
        then = texts(payload.get("replacement_argv"))[:1]
        return bool(then) and then != [decision.redirect_to.command.rpartition("/")[2]]
    if decision.redirect_signal:
        return payload.get("signal") != decision.redirect_signal
    return False


def _command(payload: Payload) -> str:
    """What it is called, with its subcommand where it has some."""
    program = command_request(payload).programs[0]
    name = name_for_subcommands(program.path.rpartition("/")[2], program.name)
    words = [program.name]
    if has_subcommands(name):
        words.append(subcommand(name, program.argv))
    return " ".join(filter(None, words))[:_LONGEST_NAME]


def _command_line(payload: Payload) -> str:
    argv = texts(payload.get("argv")) or [text(payload.get("path"))]
    return shell_words(argv)[:_LONGEST_EXAMPLE]


def _signal(payload: Payload) -> str:
    request = signal_request(payload)
    name = signal_name(request.signal) if request.signal in ALL else f"signal {request.signal}"
    types = request.target_types
    return f"{name} to {most_specific(types).value if types else 'unknown'}"


def _sender(payload: Payload) -> str:
    source, target = text(payload.get("source_cmd")), text(payload.get("target_cmd"))
    pid = number(payload.get("target_pid"))
    return f"{source} to {target} ({pid})"[:_LONGEST_EXAMPLE]


def _destination(payload: Payload) -> str:
    destination = text(payload.get("destination")) or "?"
    return reaching(text(payload.get("direction")), destination)[:_LONGEST_EXAMPLE]


def _connecting(payload: Payload) -> str:
    return f"{text(payload.get('comm')) or '?'}, {_destination(payload)}"[:_LONGEST_EXAMPLE]


_WHAT = {"exec": _command, "signal": _signal, "connection": _destination}
_EXAMPLE = {"exec": _command_line, "signal": _sender, "connection": _connecting}
