"""Every recorded decision again, under the policy of its session: does the same come out?

So whoever rewrites a decision and then the whole chain is found out, wherever the policy says
otherwise. What sigwrap decides beneath any policy is held against what such a decision needs.
A decision that rests on what the log doesn't have is counted, with the reason, and is no failure.
"""

from __future__ import annotations

import signal
from collections import Counter
from dataclasses import dataclass, field

from sigwrap.events import (
    CONNECTION_TYPES,
    EVENT_TYPES,
    SIGNAL_TYPES,
    Event,
    Payload,
    number,
    text,
    texts,
)
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.limits import exceeded
from sigwrap.policy.judge.network import OUT_OF_RULES
from sigwrap.policy.judge.recorded import (
    JUDGEMENT,
    command_request,
    connection_request,
    crowd,
    programs_here,
    signal_request,
)
from sigwrap.policy.judge.request import Action, Decision
from sigwrap.policy.tools.again import Again
from sigwrap.report.check.account import Account
from sigwrap.report.check.before import Before, NotJudged
from sigwrap.report.check.recorded_policy import NoPolicy, has_other_texts, recorded_policy
from sigwrap.report.check.telling import (
    exec_told_otherwise,
    is_named_as_its_path,
    message_told_otherwise,
    replaced_otherwise,
    signal_told_otherwise,
    stub_told_otherwise,
)
from sigwrap.report.check.whatever_words import possible_decisions, untold
from sigwrap.store.bounds import CUT

OTHER_NAME = "their recorded paths name other programs than would run"
_OTHER_JUDGEMENT = "another version of sigwrap made them"

_DECISIONS_OF = {
    "exec_allowed": {"allow", "approve"},
    "exec_audited": {"audit"},
    "exec_denied": {"deny", "absorb"},
    "exec_redirected": {"redirect"},
    "signal_sent": {"allow", "audit"},
    "signal_blocked": {"deny", "approve"},
    "signal_redirected": {"redirect"},
    "signal_absorbed": {"absorb"},
    "signal_approved": {"approve"},
    "connection_allowed": {"allow"},
    "connection_audited": {"audit"},
    "connection_approved": {"approve"},
    "connection_denied": {"deny"},
}
_EXEC_OF = {
    Action.ALLOW: {("exec_allowed", "allow")},
    Action.AUDIT: {("exec_audited", "audit")},
    Action.APPROVE: {("exec_allowed", "approve"), ("exec_denied", "deny")},
    Action.REDIRECT: {("exec_redirected", "redirect"), ("exec_denied", "deny")},
    Action.ABSORB: {("exec_denied", "absorb")},
    Action.DENY: {("exec_denied", "deny")},
}
_SIGNAL_OF = {
    Action.ALLOW: {("signal_sent", "allow")},
    Action.AUDIT: {("signal_sent", "audit")},
    Action.APPROVE: {("signal_approved", "approve"), ("signal_blocked", "approve")},
    Action.REDIRECT: {("signal_redirected", "redirect")},
    Action.ABSORB: {("signal_absorbed", "absorb")},
    Action.DENY: {("signal_blocked", "deny")},
}
_CONNECTION_OF = {
    Action.ALLOW: {("connection_allowed", "allow")},
    Action.AUDIT: {("connection_audited", "audit")},
    Action.APPROVE: {("connection_approved", "approve"), ("connection_denied", "deny")},
    Action.DENY: {("connection_denied", "deny")},
}
_AS_DECIDED = {
    "exec_allowed": Action.ALLOW,
    "exec_audited": Action.AUDIT,
    "exec_denied": Action.DENY,
}
# A call that can't absorb, replace or ask fails.
_FAILS_INSTEAD = {Action.APPROVE, Action.REDIRECT, Action.ABSORB}
_BLOCKED = ("signal_blocked", "deny")
_STUB_COMMAND = {("exec_allowed", "allow"), ("exec_denied", "deny")}

# Rules beneath every policy (mediate/): who could not be looked into, and so on.
BUILT_IN = "builtin:"
UNSEEN_RULES = frozenset({"builtin:unreadable", "builtin:stalled"})
TRACED_RULE = "builtin:traced"
PROTECTS_SIGWRAP_RULE = "builtin:sigwrap"
STUB_RULE = "builtin:stub"
OWNER_RULE = "builtin:owner"
JOB_RULE = "builtin:job"
PARENT_RULE = "builtin:parent"
PTRACE_RULE = "builtin:ptrace"
UNAIMED_RULES = frozenset(
    {"builtin:everybody", "builtin:unresolved", "builtin:group", "builtin:terminal"}
)
# They can absorb, replace and ask, and reach some of a group and not others.
SENDING = frozenset("kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal".split())
_JOB_STOPS = {signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}

_MOST_ROWS_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """`row` is the first whose decision is not the policy's; 0 where there is none."""

    decisions: int = 0
    reproduced: int = 0
    problem: str = ""
    row: int = 0
    not_judged: dict[str, int] = field(default_factory=dict)  # how many, by the reason
    not_judged_rows: dict[str, tuple[int, ...]] = field(default_factory=dict)  # the first of these


class ReproductionFold:
    """`version`: this sigwrap's."""

    def __init__(self, version: str) -> None:
        self._version = version
        self._decisions = 0
        self._reproduced = 0
        self._problem = ""
        self._row = 0
        self._not_judged: Counter[str] = Counter()
        self._not_judged_rows: dict[str, list[int]] = {}
        self._judge: _Judge | None = None
        self._no_judge = "the log has no policy"
        self._judges_otherwise = ""

    def add(self, event: Event) -> None:
        if event.seq == 1 and event.type == "session_started":
            self._start(event.payload)
        elif event.type in _DECISIONS_OF:
            self._decide(event)
        elif event.type not in EVENT_TYPES:
            if not self._judges_otherwise:
                self._object(event, "this version of sigwrap does not know this event type")
        elif self._judge is not None:
            self._note(self._judge, event)

    def result(self) -> Reproduction:
        return Reproduction(
            decisions=self._decisions,
            reproduced=self._reproduced,
            problem=self._problem,
            row=self._row,
            not_judged=dict(self._not_judged),
            not_judged_rows={why: tuple(rows) for why, rows in self._not_judged_rows.items()},
        )

    def _start(self, started: Payload) -> None:
        if has_other_texts(started):
            self._problem, self._row = "policy_digest does not match the recorded policy", 1
        if started.get("judgement") != JUDGEMENT or started.get("sigwrap") != self._version:
            self._judges_otherwise = _OTHER_JUDGEMENT
        try:
            policy = recorded_policy(started)
            self._judge = _Judge(Engine(policy), started)
            if not self._judges_otherwise and started.get("policy") != policy.name:
                self._problem, self._row = "the recorded policy has another name", 1
        except NoPolicy as none:
            self._no_judge = str(none)

    def _note(self, judge: _Judge, event: Event) -> None:
        try:
            problem = judge.note(event)
        except NotJudged:
            return  # the same is said of the decisions
        if problem and not self._judges_otherwise:
            self._object(event, problem)

    def _decide(self, event: Event) -> None:
        self._decisions += 1
        if self._judge is None:
            self._leave(event, self._no_judge)
            return
        try:
            problem = self._judge.objection(event)
        except NotJudged as why:
            self._leave(event, str(why))
            return
        if not problem:
            self._reproduced += 1
        elif self._judges_otherwise:
            self._leave(event, self._judges_otherwise)
        else:
            self._object(event, problem)

    def _object(self, event: Event, problem: str) -> None:
        if not self._problem:
            self._problem, self._row = problem, event.seq

    def _leave(self, event: Event, why: str) -> None:
        self._not_judged[why] += 1
        rows = self._not_judged_rows.setdefault(why, [])
        if len(rows) < _MOST_ROWS_NAMED:
            rows.append(event.seq)


class _Judge:
    def __init__(self, engine: Engine, started: Payload) -> None:
        self._account = Account(started)
        self._engine = engine
        self._limits = engine.policy.limits
        self._again = Again(self._decided)
        self._before = Before()

    def note(self, event: Event) -> str:
        """Of what decides nothing: empty where what it rests on is there. Raises NotJudged."""
        return self._before.note(event) or self._account.note(event)

    def objection(self, event: Event) -> str:
        """Empty where the same comes out again. Raises NotJudged."""
        try:
            return self._objection(event)
        finally:
            self._before.decided(event)

    def _objection(self, event: Event) -> str:
        payload = event.payload
        decision = text(payload.get("decision"))
        if decision not in _DECISIONS_OF[event.type]:
            return f"{event.type} with decision {decision or 'missing'}"
        if event.type in SIGNAL_TYPES:
            is_redirected = event.type == "signal_redirected"
            if payload.get("source_pid") != event.pid:
                return "its source_pid is not its pid"
            problem = signal_told_otherwise(payload, is_redirected=is_redirected)
            problem = problem or self._signal_objection(event, decision)
            if problem and (reason := untold(payload)):
                raise NotJudged(reason)
            return problem
        if event.type in CONNECTION_TYPES:
            problem = self._connection_objection(event, decision)
            if problem and (reason := untold(payload)):
                raise NotJudged(reason)
            return problem
        problem = "" if self._account.has_begun else self._account.first_exec(event)
        problem = problem or self._exec_told_otherwise(event, decision)
        problem = problem or self._exec_objection(event, decision)
        reason = untold(payload) if problem else ""
        if reason:
            problem = self._objection_whatever_the_words(event, decision)
        if problem:
            return problem
        if reason:
            raise NotJudged(reason)
        if not is_named_as_its_path(payload):
            raise NotJudged(OTHER_NAME)
        return ""

    # Execs

    def _exec_told_otherwise(self, event: Event, decision: str) -> str:
        return exec_told_otherwise(
            event.payload,
            is_replaced=event.type == "exec_redirected",
            is_approved=decision == "approve",
        )

    def _objection_whatever_the_words(self, event: Event, decision: str) -> str:
        """That holds for any words in the place of those that are not in the log."""
        payload = event.payload
        if CUT not in payload and (problem := self._exec_told_otherwise(event, decision)):
            return problem
        request = command_request(payload)
        if exceeded(self._limits, request.depth, crowd(payload)) is not None:
            return self._exec_objection(event, decision)
        here = programs_here(payload, request)
        possible = possible_decisions(self._engine, request, here, payload)
        if possible is None:
            return ""
        problem = self._exec_objection(event, decision, tuple(possible))
        return f"{problem}, whatever its masked or cut arguments are" if problem else ""

    def _exec_objection(
        self, event: Event, decision: str, possible: tuple[Decision, ...] = ()
    ) -> str:
        """`possible`: what the policy may have said, where words are missing."""
        payload, rule = event.payload, text(event.payload.get("rule_name"))
        if rule in UNSEEN_RULES:
            is_told = any(map(payload.get, ("path", "argv", "programs")))
            is_unseen = event.type == "exec_denied" and not is_told
            return "" if is_unseen else f"{rule} is only for an exec that sigwrap could not read"
        if rule == TRACED_RULE:
            is_traced = event.type == "exec_denied" and payload.get("traced") is True
            return "" if is_traced else f"{rule} is only for a traced caller"
        if payload.get("stub") is True:
            return self._stub_objection(event, decision)
        policys = possible or self._again.decided(event)
        if rule == "limits.max_execs" and event.type == "exec_denied":
            return self._used_up_objection(policys)
        if event.type != "exec_denied" and 0 < self._limits.max_execs <= self._before.gone_on:
            return f"limits.max_execs: {self._before.gone_on} programs were started before"
        fitting = [
            each
            for each in policys
            if each.rule == rule and (event.type, decision) in _EXEC_OF[each.action]
        ]
        if not fitting:
            return _differs(policys[0], decision, rule)
        problems = [self._outcome_objection(event, decision, each) for each in fitting]
        if "" not in problems:
            return problems[0]
        if possible or _AS_DECIDED.get(event.type) is not fitting[0].action:
            return ""
        is_told = any(payload.get("reason") == each.reason for each in fitting)
        return "" if is_told else "its reason differs from the policy's"

    def _decided(self, event: Event) -> tuple[Decision, ...]:
        """Of a caller that is traced it may be either: a wrapper is then judged as if it would run
        all that it wraps."""
        payload = event.payload
        if event.type in SIGNAL_TYPES:
            return (self._engine.decide_signal(signal_request(payload)),)
        if event.type in CONNECTION_TYPES:
            return (self._engine.network.decide(connection_request(payload)),)
        request = command_request(payload)
        limit = exceeded(self._limits, request.depth, crowd(payload))
        if limit is not None:
            return (limit,)
        decision = self._engine.decide_exec(request, programs_here(payload, request))
        if not request.traced:
            return (decision,)
        return decision, self._engine.decide_command(request)

    def _used_up_objection(self, policys: tuple[Decision, ...]) -> str:
        most = self._before.gone_on + self._before.redirected  # a replacement counts once it runs
        if not 0 < self._limits.max_execs <= most:
            return f"limits.max_execs: at most {most} programs were started before"
        if all(each.action is Action.DENY for each in policys):
            return _differs(policys[0], "deny", "limits.max_execs")
        return ""

    def _stub_objection(self, event: Event, decision: str) -> str:
        payload, rule = event.payload, text(event.payload.get("rule_name"))
        parent = number(payload.get("ppid"))
        if self._before.rule_of_stub(parent) != rule:
            return f"its parent is not a stub of rule {rule}"
        if (event.type, decision) not in _STUB_COMMAND:
            return f"{event.type} cannot be the answer to a stub's command"
        return stub_told_otherwise(payload, self._before.replacement_of_stub(parent))

    def _outcome_objection(self, event: Event, decision: str, policys: Decision) -> str:
        payload = event.payload
        if problem := message_told_otherwise(payload, policys.message):
            return problem
        match decision:
            case "approve":
                return self._before.yes_objection(event, policys.rule)
            case "redirect":
                programs = command_request(payload).programs
                return replaced_otherwise(payload, policys.redirect_to, programs)
            case _:
                return ""

    # Signals

    def _signal_objection(self, event: Event, decision: str) -> str:
        payload, rule = event.payload, text(event.payload.get("rule_name"))
        is_let_through = event.type == "signal_sent"
        is_blocked = (event.type, decision) == _BLOCKED
        types = texts(payload.get("target_types"))
        is_unaimed = not types and not payload.get("target_pid")
        source = number(payload.get("source_pid"))
        match rule:
            case _ if rule in UNAIMED_RULES:
                needs = is_blocked and is_unaimed
            case _ if rule == PROTECTS_SIGWRAP_RULE:
                needs = is_blocked and (is_unaimed or "parent" in types)
            case _ if rule == PTRACE_RULE:
                needs = is_blocked and (
                    "session" not in types or payload.get("syscall") == "ptrace"
                )
            case _ if rule == STUB_RULE:
                needs = is_let_through and "external" not in types
                needs = needs and bool(self._before.rule_of_stub(source))
            case _ if rule == OWNER_RULE:
                needs = is_let_through and is_unaimed and payload.get("syscall") not in SENDING
            case _ if rule == PARENT_RULE:
                needs = is_let_through and "ancestors" in types
                needs = needs and payload.get("syscall") not in SENDING
            case _ if rule == JOB_RULE:
                number_sent = number(payload.get("signal"))
                needs = is_let_through and "correlation" in payload and "parent" not in types
                needs = needs and number_sent in _JOB_STOPS
                needs = needs and ("session" in types or number_sent == signal.SIGTSTP)
            case _:
                return self._policy_objection(event, decision, rule)
        return "" if needs else f"{rule} never gives this decision"

    def _policy_objection(self, event: Event, decision: str, rule: str) -> str:
        payload = event.payload
        if "parent" in texts(payload.get("target_types")):
            return f"{PROTECTS_SIGWRAP_RULE} denies every signal to sigwrap itself"
        [judged] = self._again.decided(event)
        if judged.rule != rule:
            return _differs(judged, decision, rule)
        # Of a group that a call reaches wholly or not at all, one member refuses for all.
        may_fail = judged.action in _FAILS_INSTEAD or "correlation" in payload
        may_fail = may_fail and payload.get("syscall") not in SENDING
        if (event.type, decision) == _BLOCKED and may_fail:
            return ""
        if problem := message_told_otherwise(payload, judged.message):
            return problem
        if (event.type, decision) not in _SIGNAL_OF[judged.action]:
            return _differs(judged, decision, rule)
        if event.type == "signal_approved":
            return self._before.signal_yes_objection(payload)
        if event.type == "signal_redirected" and payload.get("signal") != judged.redirect_signal:
            return f"the policy redirects to signal {judged.redirect_signal}"
        return ""

    # Connections

    def _connection_objection(self, event: Event, decision: str) -> str:
        payload, rule = event.payload, text(event.payload.get("rule_name"))
        if rule == OUT_OF_RULES:
            is_out_of_rules = event.type == "connection_denied" and "direction" not in payload
            return "" if is_out_of_rules else f"{rule} never gives this decision"
        [judged] = self._again.decided(event)
        if judged.rule != rule or (event.type, decision) not in _CONNECTION_OF[judged.action]:
            return _differs(judged, decision, rule)
        if event.type == "connection_approved":
            return self._before.connection_yes_objection(event, rule)
        return message_told_otherwise(payload, judged.message)


def _differs(policys: Decision, decision: str, rule: str) -> str:
    said = f"{policys.action.value} by {policys.rule}"
    return f"the policy says {said}, the log {decision} by {rule or 'no rule'}"
