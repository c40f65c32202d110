"""The facts of a signal: how a call names its target, and which processes it would reach."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from sigwrap.approve.questions import Question, denial
from sigwrap.bare import Enum, NamedTuple
from sigwrap.policy.judge.request import PROTECTS_SIGWRAP, Decision
from sigwrap.policy.judge.signals import signal_name
from sigwrap.session.effects import SignalTarget, UnknownCall
from sigwrap.session.lineage import Process, WouldFail
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


# Which processes a call would reach


class Group(NamedTuple):
    members: tuple[SignalTarget, ...]
    is_own_job: bool = False  # the sender stops its own foreground job


class AllProcesses(NamedTuple):
    """kill(-1), or all processes of a user."""


class JudgedOwner(NamedTuple):
    """The call chooses the signal. Its target was judged when the owner was set."""


class NoOwner(NamedTuple):
    """The descriptor has no owner, or loses it."""


class Unresolved(NamedTuple):
    """The target cannot be determined."""


class Stalled(NamedTuple):
    """The caller's memory, which names the target, could not be read in time."""


class NoProcess(NamedTuple):
    """The call's registers show that it reaches no process, so the kernel may continue it."""


class Own(NamedTuple):
    """The group or the terminal is the session's own."""


class OwnInMemory(NamedTuple):
    """The group is the session's own, but another thread can change its number in memory."""

    group: int


class NotOwn(NamedTuple):
    """The group or the terminal is not the session's own."""


class Exists(NamedTuple):
    """Signal 0 to a process outside, which the caller could signal without Landlock."""


Aim = (
    SignalTarget
    | Group
    | AllProcesses
    | JudgedOwner
    | NoOwner
    | Unresolved
    | Stalled
    | NoProcess
    | Own
    | OwnInMemory
    | NotOwn
    | Exists
    | UnknownCall
    | WouldFail
)


class SignalFacts(NamedTuple):
    sender: Process
    syscall: str
    signal: int
    how: How
    aim: Aim
    correlation: int  # the same for all members of a group
    stub_may_signal: tuple[int, ...]  # if the sender is a stub: its command and itself
    handles: Callable[[int, int], bool]  # whether a pid catches or ignores a signal now
    may_change: Callable[[SignalTarget], bool] = lambda _target: False  # as its parent shell


# Texts about a signal: the approval request, and the lines for a denied sender.

_LINES_EACH = 10
_SENDERS_KEPT = 256
_NO_MORE = "sigwrap: further denials of this process are only in the log (sigwrap report)"


def to_one(facts: SignalFacts, target: SignalTarget) -> str:
    return f"{_aimed(facts)} {_named(target)}"


def request_for(facts: SignalFacts, asked: Sequence[tuple[SignalTarget, Decision]]) -> Question:
    """Make the approval request. An approval for the session covers these very processes only."""
    asked = sorted(asked, key=lambda each: each[0].is_inside)  # outside first: a long list is cut
    targets = "; ".join(_placed(target) for target, _ in asked)
    each_key = ((each.rule, target.pid, target.start_time, target.comm) for target, each in asked)
    decision = asked[0][1]
    return Question(
        kind="signal",
        pid=facts.sender.pid,
        process=facts.sender.comm,
        depth=facts.sender.depth,
        what=f"{_aimed(facts)} {targets}",
        rule=decision.rule,
        message=decision.message,
        key=(
            *("signal", facts.syscall, signal_name(facts.signal)),
            *(str(part) for parts in each_key for part in parts),
        ),
        execs=facts.sender.execs,
    )


def _aimed(facts: SignalFacts) -> str:
    is_sent = facts.how in SENDS
    return f"{signal_name(facts.signal)} to" if is_sent else f"{facts.syscall} aimed at"


def _named(target: SignalTarget) -> str:
    return f"{target.pid} ({shell_words([target.comm])})"


def _placed(target: SignalTarget) -> str:
    where = "" if target.is_inside else ", outside this session"
    return _named(target) + where


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
