"""The facts of a signal: by what a call names its target, and whom it would reach."""

from __future__ import annotations

from collections.abc import Callable

from sigwrap.bare.enum import Enum
from sigwrap.mediate.effects import SignalTarget
from sigwrap.mediate.facts import WouldFail
from sigwrap.mediate.lineage import Process
from sigwrap.tuples import NamedTuple


class How(Enum):
    """By what the call names its target, which decides how it may go on."""

    NUMBER = "number"  # a register: continuing is safe
    PIDFD = "pidfd"  # a descriptor, which another thread can swap
    ITSELF = "itself"  # the caller by a magic number for a pidfd: a register too
    OWNER = "owner"  # whom the kernel will signal for a descriptor; the number is a register
    OWNER_IN_MEMORY = "owner in memory"  # the same, but another thread can rewrite it
    TRACE = "trace"  # or read or write its memory; the number is a register
    TRACED_BY_PARENT = "traced by parent"  # the caller asks its parent to trace it
    CHANGE = "change"  # what it gets of the machine: limits that kill it, time that it starves for
    SIGNAL_OF_OWNER = "signal of owner"  # it chooses the signal that an owner will get
    ASYNC = "async"  # whoever owns the descriptor is signalled from now on
    JOIN = "join"  # a process group
    FOREGROUND = "foreground"  # which group a terminal's keys signal
    TERMINAL = "terminal"  # taken from the session that it controls


SENDS = (How.NUMBER, How.PIDFD, How.ITSELF)


# Whom a call would reach


class Group(NamedTuple):
    members: tuple[SignalTarget, ...]
    is_own_job: bool = False  # the sender's, in the foreground of its terminal, is to stop


class Everybody(NamedTuple):
    """kill(-1), or all processes of a user."""


class WhoeverOwns(NamedTuple):
    """The call chooses the signal; whom it goes to was judged when the owner was set."""


class NoOwner(NamedTuple):
    """The descriptor is to signal nobody any more."""


class Unresolved(NamedTuple):
    """It can't be found out."""


class Nobody(NamedTuple):
    """By its registers the call can reach no process: the kernel can have it."""


class Own(NamedTuple):
    """The group, the terminal or the tracer is the session's own."""


class OwnInMemory(NamedTuple):
    """So is this group, but another thread can name another: the supervisor carries it out."""

    group: int


class NotOwn(NamedTuple):
    """It isn't."""


class Exists(NamedTuple):
    """It asks, by signal 0, after somebody whom it might signal if there were no wall."""


Aim = (
    SignalTarget
    | Group
    | Everybody
    | WhoeverOwns
    | NoOwner
    | Unresolved
    | Nobody
    | Own
    | OwnInMemory
    | NotOwn
    | Exists
    | WouldFail
)


class SignalFacts(NamedTuple):
    sender: Process
    syscall: str
    signal: int
    how: How
    aim: Aim
    correlation: int  # the same for all members of a group
    stub_may_signal: tuple[int, ...]  # of a stub: the pids of its command and itself
    handles: Callable[[int, int], bool]  # whether a pid catches or ignores a signal, at this moment
    may_change: Callable[[SignalTarget], bool] = lambda _target: False  # as its direct child
