"""The facts of a signal: how a call names its target, whom it would reach, what sigwrap decides,
and the event and the texts about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from sigwrap.approve.questions import Question, denial
from sigwrap.bare import Enum, NamedTuple
from sigwrap.events import Payload
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.request import (
    LENIENT,
    PROTECTS_SIGWRAP,
    Action,
    Decision,
    SignalRequest,
    TargetType,
    with_implied,
)
from sigwrap.policy.judge.rules import SignalRule, Target
from sigwrap.policy.judge.signals import ALL, GROUPS, signal_name
from sigwrap.session.effects import (
    Continue,
    Escalation,
    Fail,
    Record,
    RecordRepeated,
    SetAsync,
    SetForeground,
    SetOwner,
    SignalTarget,
    Succeed,
    Unrecorded,
)
from sigwrap.session.lineage import Process, Types
from sigwrap.text import shell_words


class How(Enum):
    """How the call names its target. This decides how the call may go on."""

    NUMBER = "number"  # in a register: the kernel may go on
    PIDFD = "pidfd"  # a descriptor, which another thread can swap
    ITSELF = "itself"  # the caller, by a magic number instead of a pidfd: a register too
    OWNER = "owner"  # will get a descriptor's signals; the number is in a register
    OWNER_IN_MEMORY = "owner in memory"  # the same, but another thread can rewrite the number
    TRACE = "trace"  # or read or write its memory; the number is in a register
    TRACED_BY_PARENT = "traced by parent"  # the caller asks its parent to trace it
    CHANGE = "change"  # limits or priority of the target, which can kill or starve it
    SIGNAL_OF_OWNER = "signal of owner"  # chooses the signal that the owner will get
    ASYNC = "async"  # the owner of the descriptor is signalled from now on
    JOIN = "join"  # joins a process group
    FOREGROUND = "foreground"  # chooses the group that a terminal's keys signal
    TERMINAL = "terminal"  # takes a terminal from the session that it controls


SENDS = (How.NUMBER, How.PIDFD, How.ITSELF)


class Group(NamedTuple):
    members: tuple[SignalTarget, ...]
    is_own_job: bool = False  # the sender stops its own foreground job


class JudgedOwner(NamedTuple):
    """The call chooses the signal. Its target was judged when the owner was set."""


class Refused(NamedTuple):
    """A built-in rule denies the call, whatever the policy says of single processes."""

    decision: Decision


# Other calls reach no process that a rule could be about, and get this answer.
Free = Continue | Succeed | Fail | SetOwner | SetAsync | SetForeground
Aim = SignalTarget | Group | JudgedOwner | Refused | Free

REACHES_NONE = Continue(Unrecorded.REACHES_NOBODY)
OWN = Continue(Unrecorded.STAYS_INSIDE)
NO_OWNER = SetOwner(None, Unrecorded.REACHES_NOBODY)


class SignalFacts(NamedTuple):
    sender: Process
    syscall: str
    signal: int
    how: How
    aim: Aim
    correlation: int  # the same for all members of a group
    stub_may_signal: tuple[int, ...]  # if the sender is a stub: its command and itself
    handles: Callable[[int, int], bool]  # whether a pid catches or ignores a signal now
    changes_its_shell: bool = False  # in a way that is allowed to a direct child


# Decisions

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
    action=Action.ALLOW, rule="builtin:parent", reason="a direct child may renice its shell"
)
STOPS_ITS_JOB = Decision(
    action=Action.ALLOW,
    rule="builtin:job",
    reason="a foreground job stops as at Ctrl+Z",
)

# Any other signal can end, stop or continue a child, and then its parent gets SIGCHLD.
IGNORED_BY_DEFAULT = GROUPS["@ignore"]

_COUNTED_FOR_S = 1.0
_REPEATED = frozenset({"process_vm_readv", "process_vm_writev", "perf_event_open"})
_EVENT_TYPES = {
    Action.ALLOW: "signal_sent",
    Action.AUDIT: "signal_sent",
    Action.APPROVE: "signal_approved",
    Action.REDIRECT: "signal_redirected",
    Action.ABSORB: "signal_absorbed",
    Action.DENY: "signal_blocked",
}


class Judged(NamedTuple):
    """The decision on one target. A call to a group has one for each member."""

    facts: SignalFacts
    target: SignalTarget
    decision: Decision
    handled: bool | None = None  # whether the target handles it; None if no rule asked

    def goes_on(self, *, granted: bool = False) -> bool:
        action = self.decision.action
        return action in LENIENT or (granted and action is Action.APPROVE)

    def is_refused(self, *, granted: bool) -> bool:
        action = self.decision.action
        return action is Action.DENY or (action is Action.APPROVE and not granted)

    def denied(self) -> Judged:
        return self._replace(decision=self.decision._replace(action=Action.DENY))

    def number(self) -> int:
        """Return the signal to send."""
        return self.decision.redirect_signal or self.facts.signal

    def event(self, *, approved: bool = False, in_group: bool = False) -> Record | RecordRepeated:
        facts, target, decision, handled = self
        escalation = None
        if decision.escalate:
            escalation = Escalation(decision.rule, _described(facts, target))
        kind = _EVENT_TYPES[decision.action]
        if decision.action is Action.APPROVE and not approved:
            kind = "signal_blocked"
        payload = event_payload(facts, target, decision)
        if handled is not None:
            payload["target_handles"] = handled
        if in_group:
            payload["correlation"] = str(facts.correlation)
        elif self._is_repeated():
            key = (facts.sender, facts.signal, decision.rule, facts.syscall, target)
            return RecordRepeated(kind, payload, key, _COUNTED_FOR_S, escalation)
        return Record(kind, payload, escalation)

    def _is_repeated(self) -> bool:
        """Return whether repeats share an event.

        A Go program signals its own threads all the time, and a debugger looks into its child.
        """
        action = self.decision.action
        if self.facts.syscall in _REPEATED:
            return action in LENIENT
        return action is Action.ALLOW and TargetType.SELF in self.target.types


def judge(engine: Engine, facts: SignalFacts, target: SignalTarget) -> Judged:
    """Decide on one target. Tracing is judged as SIGKILL: a tracer controls its tracee."""
    handled: bool | None = None

    def is_handled() -> bool:
        nonlocal handled
        if handled is None:
            handled = facts.handles(target.pid, facts.signal)
        return handled

    if facts.how is How.NUMBER and target.pid in facts.stub_may_signal:
        decision = STUB_PASSES_ON
    elif TargetType.PARENT in target.types:
        decision = PROTECTS_SIGWRAP
    elif facts.how is How.TRACE and not target.is_inside:
        decision = OUTSIDE_TRACED
    else:
        decision = engine.decide_signal(
            SignalRequest(facts.signal, target.types, target.comm, target.pid, is_handled)
        )
    return Judged(facts, target, decision, handled)


def unlogged(*all_judged: Judged) -> Unrecorded | None:
    """Return why the answer needs no event, None if any rule wants one."""
    for each in all_judged:
        if each.decision.log:
            return None
    return Unrecorded.RULE_IS_UNLOGGED


def unaimed_event(facts: SignalFacts, decision: Decision) -> Record:
    """Return the event of a call that is decided without a target."""
    return Record(_EVENT_TYPES[decision.action], event_payload(facts, None, decision))


def event_payload(facts: SignalFacts, target: SignalTarget | None, decision: Decision) -> Payload:
    redirected = decision.action is Action.REDIRECT
    number = decision.redirect_signal if redirected else facts.signal
    words = _words(frozenset() if target is None else target.types)
    payload: Payload = {
        "signal": number,
        "signal_name": signal_name(number) if number in ALL else str(number),
        "source_pid": facts.sender.pid,
        "source_cmd": facts.sender.comm,
        "target_pid": None if target is None else target.pid,
        "target_cmd": "" if target is None else target.comm,
        "target_type": words[0] if words else "unknown",
        "target_types": words,
        "decision": decision.action.value,
        "rule_name": decision.rule,
        "fallback": False,
        "original_signal": facts.signal,
        "platform": "linux",
        "syscall": facts.syscall,
    }
    if decision.message and decision.action is not Action.ALLOW:
        payload["message"] = decision.message
    return payload


_known_words: dict[Types, list[str]] = {}


def _words(types: Types) -> list[str]:
    """Return the names of the types, the most specific first."""
    words = _known_words.get(types)
    if words is None:
        words = _known_words[types] = [each.value for each in TargetType if each in types]
    return words


# Texts

_LINES_EACH = 10
_SENDERS_KEPT = 256
_NO_MORE = "sigwrap: further denials of this process are only in the log (sigwrap report)"


def _described(facts: SignalFacts, target: SignalTarget) -> str:
    """Describe the signal for SIGPOLICY. Nothing in the text is escaped."""
    name = signal_name(facts.signal) if facts.signal in ALL else f"signal {facts.signal}"
    sender = f"{facts.sender.comm} ({facts.sender.pid})"
    return f"{name} to {target.comm} ({target.pid}) by {sender}, {facts.syscall}"


def request_for(asked: Sequence[Judged]) -> Question:
    """Make the approval request. An approval for the session covers these very processes only."""
    asked = sorted(asked, key=lambda each: each.target.is_inside)  # outside first: the end is cut
    facts, _, decision, _ = asked[0]
    key = ["signal", facts.syscall, signal_name(facts.signal)]
    shown = []
    for _, target, each, _ in asked:
        key += (each.rule, str(target.pid), str(target.start_time), target.comm)
        shown.append(_named(target) + ("" if target.is_inside else ", outside this session"))
    return Question(
        kind="signal",
        pid=facts.sender.pid,
        process=facts.sender.comm,
        depth=facts.sender.depth,
        what=f"{_aimed(facts)} {'; '.join(shown)}",
        rule=decision.rule,
        message=decision.message,
        key=tuple(key),
        execs=facts.sender.execs,
    )


def to_one(facts: SignalFacts, target: SignalTarget) -> str:
    return f"{_aimed(facts)} {_named(target)}"


def _aimed(facts: SignalFacts) -> str:
    is_sent = facts.how in SENDS
    return f"{signal_name(facts.signal)} to" if is_sent else f"{facts.syscall} aimed at"


def _named(target: SignalTarget) -> str:
    return f"{target.pid} ({shell_words([target.comm])})"


class Denied(NamedTuple):
    what: str  # `SIGTERM to 4711 (node)`
    target: object  # equal for the same target only
    decision: Decision


class DeniedSignals:
    """The denials that were printed to each sender."""

    def __init__(self, policy: str) -> None:
        self._policy = policy
        self._told: dict[Process, tuple[set[tuple[str, object]], list[str]]] = {}

    def lines(self, sender: Process, denied: Iterable[Denied]) -> list[str]:
        """Return the new lines for the sender. Members of a group share a line for each rule."""
        if sender not in self._told and len(self._told) >= _SENDERS_KEPT:
            self._told.clear()
        pairs, told = self._told.setdefault(sender, (set(), []))
        by_rule: dict[str, list[Denied]] = {}
        for each in denied:
            rule = each.decision.rule
            pair = rule, None if each.decision == PROTECTS_SIGWRAP else each.target
            if pair not in pairs and len(told) <= _LINES_EACH:
                pairs.add(pair)
                by_rule.setdefault(rule, []).append(each)
        lines = [self._line(rule, those) for rule, those in by_rule.items()]
        fit = max(_LINES_EACH - len(told), 0)
        if len(lines) > fit:
            lines = [*lines[:fit], _NO_MORE]
        told += lines
        return lines

    def _line(self, rule: str, those: list[Denied]) -> str:
        first, more = those[0], len(those) - 1
        decision = first.decision
        why = decision.message or (decision.reason if rule.startswith("builtin:") else "")
        what = f"{first.what} and {more} more" if more else first.what
        return denial(what, rule, self._policy, why)


# Signals that the filter need not hand over


def noise(engine: Engine, *, domain: bool) -> frozenset[int]:
    """Return the signals that the policy allows, unlogged.

    The filter cannot see the target, so these are signals that a process ignores by default.
    In a Landlock `domain` they stay inside. Then the policy has to allow them to all targets inside
    and deny them outside. An attempt must have no further effect, such as an escalation.
    """
    if engine.policy.trust.boundary != "log":
        return frozenset()
    return frozenset(number for number in GROUPS["@ignore"] if _is_noise(engine, number, domain))


def _is_noise(engine: Engine, number: int, domain: bool) -> bool:
    policy = engine.policy
    rules = [rule for rule in policy.signal_rules if number in rule.signals]
    layers = {each.layer: each for each in reversed(rules)}.values()
    if not rules or not all(map(_passes_unlogged, layers)):
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
