"""Judges one signal to one target, and makes its event."""

from __future__ import annotations

from sigwrap.bare import NamedTuple
from sigwrap.events import Payload
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.request import (
    LENIENT,
    PROTECTS_SIGWRAP,
    Action,
    Decision,
    Fact,
    SignalRequest,
    TargetType,
    with_implied,
)
from sigwrap.policy.judge.rules import SignalRule, Target
from sigwrap.policy.judge.signals import ALL, GROUPS, signal_name
from sigwrap.session.effects import Escalation, Record, SignalTarget, Unrecorded
from sigwrap.session.lineage import Types

EVERYBODY = Decision(
    action=Action.DENY,
    rule="builtin:everybody",
    reason="a signal to all processes is never allowed",
)
UNRESOLVED = Decision(
    action=Action.DENY, rule="builtin:unresolved", reason="its target cannot be determined"
)
UNREAD = UNRESOLVED._replace(message="its arguments could not be read in time")
OWNER_JUDGED = Decision(
    action=Action.ALLOW,
    rule="builtin:owner",
    reason="the owner of the descriptor was judged as for SIGKILL",
)
STUB_PASSES_ON = Decision(
    action=Action.ALLOW,
    rule="builtin:stub",
    reason="a stub passes signals on to its command and ends as it did",
)
OUTSIDE_TRACED = Decision(
    action=Action.DENY,
    rule="builtin:ptrace",
    reason="processes in a session cannot trace processes outside it",
)
NOT_OWN_GROUP = Decision(
    action=Action.DENY,
    rule="builtin:group",
    reason="processes in a session cannot join a process group outside it or give it the terminal",
)
NOT_OWN_TERMINAL = Decision(
    action=Action.DENY,
    rule="builtin:terminal",
    reason="processes in a session cannot take a terminal from processes outside it",
)

CHANGES_ITS_SHELL = Decision(
    action=Action.ALLOW,
    rule="builtin:parent",
    reason="a direct child may renice its shell and lower its limits",
)
STOPS_ITS_JOB = Decision(
    action=Action.ALLOW,
    rule="builtin:job",
    reason="a foreground job stops as at Ctrl+Z",
)

# Any other signal can end, stop or continue a child, and then its parent gets SIGCHLD.
IGNORED_BY_DEFAULT = GROUPS["@ignore"]

_EVENT_TYPES = {
    Action.ALLOW: "signal_sent",
    Action.AUDIT: "signal_sent",
    Action.APPROVE: "signal_approved",
    Action.REDIRECT: "signal_redirected",
    Action.ABSORB: "signal_absorbed",
    Action.DENY: "signal_blocked",
}


class Attempt(NamedTuple):
    """One signal to one target. A call to a group makes one for each member."""

    syscall: str
    signal: int
    sender_pid: int
    sender_comm: str
    target_pid: int | None
    target_comm: str
    target_types: Types


class Judged(NamedTuple):
    """An attempt with its decision."""

    target: SignalTarget
    attempt: Attempt
    decision: Decision
    payload: Payload  # of its event; each event has a copy
    handled: bool | None = None  # whether the target handles it; None if no rule asked

    def goes_on(self, *, granted: bool = False) -> bool:
        action = self.decision.action
        return action in LENIENT or (granted and action is Action.APPROVE)

    def is_refused(self, *, granted: bool) -> bool:
        action = self.decision.action
        return action is Action.DENY or (action is Action.APPROVE and not granted)

    def decided(self, decision: Decision) -> Judged:
        """Return the same attempt with another decision."""
        return judged(self.target, self.attempt, decision, self.handled)

    def denied(self) -> Judged:
        return self.decided(self.decision._replace(action=Action.DENY))

    def number(self) -> int:
        """Return the signal to send."""
        return self.decision.redirect_signal or self.attempt.signal

    def event(self, *, approved: bool = False) -> Record:
        decision = self.decision
        escalation = None
        if decision.escalate:
            escalation = Escalation(decision.rule, described(self.attempt))
        kind = event_type(decision, approved=approved)
        return Record(kind, self.payload.copy(), escalation)


_REPEATED = frozenset({"process_vm_readv", "process_vm_writev", "perf_event_open"})


def judged(
    target: SignalTarget, attempt: Attempt, decision: Decision, handled: bool | None = None
) -> Judged:
    payload = event_payload(attempt, decision)
    if handled is not None:
        payload["target_handles"] = handled
    return Judged(target, attempt, decision, payload, handled)


def unlogged(*all_judged: Judged) -> Unrecorded | None:
    """Return why the answer needs no event, None if any rule wants one."""
    for each in all_judged:
        if each.decision.log:
            return None
    return Unrecorded.RULE_IS_UNLOGGED


def decide(engine: Engine, attempt: Attempt, *, handled: Fact = False, traces: bool) -> Decision:
    """Decide on one attempt. Tracing is judged as SIGKILL: a tracer controls its tracee."""
    if TargetType.PARENT in attempt.target_types:
        return PROTECTS_SIGWRAP
    if traces and TargetType.SESSION not in attempt.target_types:
        return OUTSIDE_TRACED
    return engine.decide_signal(
        SignalRequest(
            attempt.signal,
            attempt.target_types,
            attempt.target_comm,
            attempt.target_pid or 0,
            handled,
        )
    )


def event_type(decision: Decision, *, approved: bool = False) -> str:
    if decision.action is Action.APPROVE and not approved:
        return "signal_blocked"
    return _EVENT_TYPES[decision.action]


def event_payload(attempt: Attempt, decision: Decision) -> Payload:
    redirected = decision.action is Action.REDIRECT
    number = decision.redirect_signal if redirected else attempt.signal
    words = _words(attempt.target_types)
    payload: Payload = {
        "signal": number,
        "signal_name": signal_name(number) if number in ALL else str(number),
        "source_pid": attempt.sender_pid,
        "source_cmd": attempt.sender_comm,
        "target_pid": attempt.target_pid,
        "target_cmd": attempt.target_comm,
        "target_type": words[0] if words else "unknown",
        "target_types": words,
        "decision": decision.action.value,
        "rule_name": decision.rule,
        "fallback": False,
        "original_signal": attempt.signal,
        "platform": "linux",
        "syscall": attempt.syscall,
    }
    if decision.message and decision.action is not Action.ALLOW:
        payload["message"] = decision.message
    return payload


def described(attempt: Attempt) -> str:
    """Describe the attempt for SIGPOLICY. Nothing in the text is escaped."""
    known = attempt.signal in ALL
    name = signal_name(attempt.signal) if known else f"signal {attempt.signal}"
    target = f"{attempt.target_comm} ({attempt.target_pid})"
    return f"{name} to {target} by {attempt.sender_comm} ({attempt.sender_pid}), {attempt.syscall}"


_known_words: dict[Types, list[str]] = {}


def _words(types: Types) -> list[str]:
    """Return the names of the types, the most specific first."""
    words = _known_words.get(types)
    if words is None:
        words = _known_words[types] = [each.value for each in TargetType if each in types]
    return words


def is_coalesced(attempt: Attempt, decision: Decision) -> bool:
    """Return whether repeats share an event.

    A Go program signals its own threads all the time, and a debugger looks into its child.
    """
    if attempt.syscall in _REPEATED:
        return decision.action in LENIENT
    return decision.action is Action.ALLOW and TargetType.SELF in attempt.target_types


def noise(engine: Engine, *, domain: bool) -> frozenset[int]:
    """Return the signals that the filter need not hand over: the policy allows them, unlogged.

    The filter cannot see the target, so these are signals that a process ignores by default.
    In a Landlock `domain` they stay inside. Then the policy has to allow them to all targets inside
    and deny them outside. An attempt must have no further effect, such as an escalation.
    """
    return frozenset(number for number in GROUPS["@ignore"] if _is_noise(engine, number, domain))


def _is_noise(engine: Engine, number: int, domain: bool) -> bool:
    rules = [rule for rule in engine.policy.signal_rules if number in rule.signals]
    layers = {each.layer: each for each in reversed(rules)}.values()
    if not rules or not all(map(_passes_unlogged, layers)):
        return False
    policy = engine.policy
    if policy.trust.boundary != "log":
        return False
    if not domain:
        return not any(each.targets for each in layers)
    is_refused_outside = policy.default_signal is Action.DENY and not any(
        map(_is_felt_outside, rules)
    )
    return is_refused_outside and all(TargetType.SESSION in each.targets for each in layers)


def _passes_unlogged(rule: SignalRule) -> bool:
    return rule.decision is Action.ALLOW and not rule.log and rule.handled is None


def _is_felt_outside(rule: SignalRule) -> bool:
    stays_inside = rule.targets and all(map(_is_inside, rule.targets))
    return not stays_inside and (rule.decision is not Action.DENY or bool(rule.escalate))


def _is_inside(target: Target) -> bool:
    return isinstance(target, TargetType) and TargetType.SESSION in with_implied({target})
