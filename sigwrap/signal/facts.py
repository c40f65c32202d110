"""The facts of a signal: the decoded call, the processes that it would reach, built-in decisions,
and the lines that the sender of a denied one reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sigwrap.approve.requests import denial
from sigwrap.bare import Enum, NamedTuple
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.request import (
    PROTECTS_SIGWRAP,
    Action,
    Decision,
    TargetType,
    with_implied,
)
from sigwrap.policy.judge.rules import SignalRule, Target
from sigwrap.policy.judge.signals import GROUPS
from sigwrap.session.effects import (
    ChangeDescriptor,
    Continue,
    Fail,
    SignalTarget,
    Succeed,
    Unrecorded,
)
from sigwrap.session.lineage import Process


class CallKind(Enum):
    """What the call does, and how it names its target. This decides how the call may go on."""

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


SENDS = (CallKind.NUMBER, CallKind.PIDFD, CallKind.ITSELF)


class SignalCall(NamedTuple):
    """One decoded call. Numbers and descriptors in it are the caller's, except `held`."""

    syscall: str
    kind: CallKind
    signal: int
    target: int  # above 0 a process, below 0 a group, 0 the caller's group; or the pidfd
    thread: int = 0  # a thread of it, if the call names one
    descriptor: int = -1  # the one whose owner is set
    flags: int = 0
    info: bytes | None = b""  # the caller's own siginfo; None if it cannot be read
    value: int = 0  # the new priority, I/O class or scheduling policy
    held: int = -1  # the supervisor's duplicate of the descriptor, which the caller cannot swap


NO_CALL = SignalCall("", CallKind.NUMBER, signal=0, target=0)
EVERY_PROCESS = -1  # as a target


class TargetGroup(NamedTuple):
    members: tuple[SignalTarget, ...]
    is_own_job: bool = False  # the sender stops its own foreground job


class RefusedCall(NamedTuple):
    """A built-in rule denies the call, whatever the policy says of single processes."""

    decision: Decision


# Other calls reach no process that a rule could be about, and get this answer.
Free = Continue | Succeed | Fail | ChangeDescriptor
SignalAim = SignalTarget | TargetGroup | RefusedCall | Free

REACHES_NONE = Continue(Unrecorded.REACHES_NO_PROCESS)
OWN = Continue(Unrecorded.STAYS_INSIDE)
NO_OWNER = ChangeDescriptor(None, Unrecorded.REACHES_NO_PROCESS)


class SignalFacts(NamedTuple):
    sender: Process
    syscall: str
    signal: int
    kind: CallKind
    aim: SignalAim
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
UNRESOLVED_TARGET = RefusedCall(UNRESOLVED)
UNREAD = UNRESOLVED._replace(message="its arguments could not be read in time")
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

# Texts

_LINES_EACH = 10
_SENDERS_KEPT = 256
_NO_MORE = "sigwrap: further denials of this process are only in the log (sigwrap report)"


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
