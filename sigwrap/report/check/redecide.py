"""Decide a recorded request again, from its event alone.

`verify` does so under the recorded policy, `policy try` under another one.
"""

from __future__ import annotations

from sigwrap.events import CONNECTION_TYPES, EXEC_TYPES, SIGNAL_TYPES, Event, Payload, text, texts
from sigwrap.policy.judge.engine import Engine, Facts
from sigwrap.policy.judge.limits import exceeded, used_up
from sigwrap.policy.judge.network import Direction, NetworkRules, Protocol
from sigwrap.policy.judge.recorded import (
    command_request,
    connection_request,
    crowd,
    programs_here,
    signal_request,
)
from sigwrap.policy.judge.request import DEFAULT_RULE, Action, AskedFact, CommandRequest, Decision
from sigwrap.policy.judge.rules import Policy
from sigwrap.policy.tools.again import Again
from sigwrap.store.bounds import CUT
from sigwrap.tuples import NamedTuple

BUILT_IN = "built-in rules made them, not the policy"
MASKED = "possible secrets in them were masked"
TOO_LONG = "they were too long for the log and were cut"
NOT_RECORDED = "the log lacks facts that the other policy needs"
TRACED = "another program traced their caller"

_MASK = "***"  # mediate/masking.py


class Redecided(NamedTuple):
    decision: Decision
    doubt: str = ""  # why the decision then may have been another one; empty if certain


class Redecider:
    """Decides events under the policy of `engine`.

    `recorded` is the session's own policy if it is known. The log has only the facts that it
    asked for.
    """

    def __init__(self, engine: Engine, recorded: Policy | None) -> None:
        self.engine = engine
        self._limits = engine.policy.limits
        self._is_recorded = engine.policy is recorded
        rules = () if recorded is None else recorded.command_rules
        self._has_code = any(each.loads_code is not None for each in rules)
        hosts = frozenset[str]() if recorded is None else NetworkRules.of(recorded).names
        self._lacks_hosts = bool(self.engine.network.names - hosts)
        self._pins = [
            each for each in self.engine.command_rules if each.rule.sha256 or each.rule.not_sha256
        ]
        self._again = Again(self._redecided)

    def decide(self, event: Event, execs: int) -> Redecided | str:
        """Return the decision, or why no policy makes it. `execs` programs were started before."""
        if is_built_in(event.payload):
            return BUILT_IN
        found = self._again.decided(event)
        if event.type in EXEC_TYPES and found.decision.action is not Action.DENY:
            limit = used_up(self._limits, execs)
            found = found if limit is None else Redecided(limit)
        return found._replace(doubt=found.doubt or _missing_words(event.payload))

    def _redecided(self, event: Event) -> Redecided:
        if event.type in SIGNAL_TYPES:
            return self._signal(event.payload)
        if event.type in CONNECTION_TYPES:
            return self._connection(event.payload)
        return self._exec(event.payload)

    def _exec(self, payload: Payload) -> Redecided:
        request = command_request(payload)
        limit = exceeded(self._limits, request.depth, crowd(payload))
        if limit is not None:
            return Redecided(limit)
        code = [AskedFact(lambda: False) for _ in request.programs]
        if not self._has_code:
            programs = (
                program if program.loads_code else program._replace(loads_code=fact)
                for program, fact in zip(request.programs, code, strict=True)
            )
            request = request._replace(programs=tuple(programs))
        decision = self.engine.decide_exec(request, programs_here(payload, request))
        if request.traced and decision != self.engine.decide_command(request):
            return Redecided(decision, TRACED)
        lacks = any(fact.answer is not None for fact in code) or self._lacks_digest(request)
        return self._with_doubt(decision, lacks)

    def _lacks_digest(self, request: CommandRequest) -> bool:
        return any(
            rule.names(Facts(program, request))
            for program in request.programs
            if not (program.sha256 or program.counts_by_name or program.missing)
            for rule in self._pins
        )

    def _signal(self, payload: Payload) -> Redecided:
        handled = AskedFact(lambda: payload.get("target_handles") is True)
        decision = self.engine.decide_signal(signal_request(payload)._replace(handled=handled))
        lacks = handled.answer is not None and "target_handles" not in payload
        return self._with_doubt(decision, lacks)

    def _connection(self, payload: Payload) -> Redecided:
        endpoint = connection_request(payload)
        decision = self.engine.network.decide(endpoint)
        has_no_host = endpoint.protocol is Protocol.UNIX or endpoint.direction is Direction.BIND
        return self._with_doubt(decision, self._lacks_hosts and not has_no_host)

    def _with_doubt(self, decision: Decision, lacks_facts: bool) -> Redecided:
        return Redecided(decision, NOT_RECORDED if lacks_facts and not self._is_recorded else "")


def is_built_in(payload: Payload) -> bool:
    """Return whether sigwrap decided this itself, below every policy."""
    rule = text(payload.get("rule_name"))
    return payload.get("stub") is True or (rule.startswith("builtin:") and rule != DEFAULT_RULE)


def replaced_otherwise(payload: Payload, decision: Decision) -> bool:
    """Return whether the event has another replacement than the decision."""
    if decision.redirect_to is not None:
        then = texts(payload.get("replacement_argv"))[:1]
        return bool(then) and then != [decision.redirect_to.command.rpartition("/")[2]]
    if decision.redirect_signal:
        return payload.get("signal") != decision.redirect_signal
    return False


def judged_lines(payload: Payload) -> list[list[str]]:
    """Return the arguments of each program that the policy judged, the exec's own first."""
    listed = payload.get("programs")
    programs = listed if isinstance(listed, list) else []
    found = [texts(each.get("argv")) for each in programs if isinstance(each, dict)]
    return found or [texts(payload.get("argv"))]


def _missing_words(payload: Payload) -> str:
    """Return why the event may lack words that the policy saw."""
    if isinstance(payload.get(CUT), dict):
        return TOO_LONG
    is_masked = payload.get("masked") is True
    has_mask = is_masked and any(_MASK in word for line in judged_lines(payload) for word in line)
    return MASKED if has_mask else ""
