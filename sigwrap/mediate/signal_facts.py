"""The facts of a signal: how a call names its target, and which processes it would reach."""

from __future__ import annotations

from collections.abc import Callable

from sigwrap.bare import Enum, NamedTuple
from sigwrap.mediate.effects import SignalTarget
from sigwrap.mediate.facts import WouldFail
from sigwrap.mediate.lineage import Process
from sigwrap.mediate.refusal import UnknownCall


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
