"""Effects that mediators yield, and the reply to each.

A mediator is a generator: it gets facts, yields effects one by one, and is resumed with the reply
to each. The performer (session/perform.py) carries effects out; it passes those of one family to
the family's handler (exec/handler.py …). While a mediator waits for an approval or for the end of
an exec, its generator is suspended. If the caller is gone, the performer closes the generator, so
no mediator needs to check for that.

    Record(…)            reply: Logged           an event is appended to the log
    Continue(), Fail(…)  reply: None             the kernel gets its answer

The performer refuses an answer for which no event was recorded. An answer without an event gives
its reason as `Unrecorded`.

Named tuples, not dataclasses: some are made for every exec and signal, at a third of the time.
"""

from __future__ import annotations

import errno
from collections.abc import Generator

from sigwrap.approve.requests import ApprovalRequest
from sigwrap.bare import Any, Enum, IntEnum, NamedTuple
from sigwrap.events import Payload
from sigwrap.exec.facts import ExecFacts
from sigwrap.policy.judge.request import CommandRedirect, TargetType
from sigwrap.session.lineage import Process, Types
from sigwrap.session.run_end import LimitReached

Steps = Generator["Effect", Any, None]  # what a mediator does about one request
Judgement = Generator["Effect", Any, bool]  # some of these; returns whether to go on


# All families


class Logged(IntEnum):
    """The result of recording an event; false if it could not be written."""

    FAILED = 0
    WRITTEN = 1
    COUNTED = 2  # it repeats a logged event; a later event has the count


class Escalation(NamedTuple):
    """A rule with `escalate` has decided: send SIGPOLICY once the event is recorded."""

    rule: str
    what: str  # the request


class Record(NamedTuple):
    """Append an event to the log. Reply: Logged."""

    event: str
    payload: Payload
    escalation: Escalation | None = None


class RecordRepeated(NamedTuple):
    """Record the first event of its key. Repeats within the time share one more event, with their
    count. Reply: Logged."""

    event: str
    payload: Payload
    key: tuple[object, ...]
    within_s: float
    escalation: Escalation | None = None


class Unrecorded(Enum):
    """Why an answer needs no event."""

    NOTHING_HAPPENS = "the kernel would refuse the call as well, and nothing takes effect"
    REACHES_NO_PROCESS = "by its registers the call can reach no process"
    ONLY_ASKS = "the call only reads"
    STAYS_INSIDE = "it concerns the caller alone, or what is the session's own"
    RULE_IS_UNLOGGED = "the rule says log: false"
    NO_RULE = "no rule speaks of the mount, of the file, or of a fork within the limits"


class Continue(NamedTuple):
    """Let the kernel go on with the call. Safe only if the arguments are in registers, or if
    nothing is enforced (mounts, audits)."""

    unrecorded: Unrecorded | None = None


class Fail(NamedTuple):
    """Fail the call. The kernel does nothing."""

    errno: int
    unrecorded: Unrecorded | None = None


def would_fail(error: int) -> Fail:
    """Return the answer to a call that the kernel would refuse as well."""
    return Fail(error, Unrecorded.NOTHING_HAPPENS)


class Succeed(NamedTuple):
    """Return this value to the caller. The kernel does nothing."""

    unrecorded: Unrecorded | None = None
    value: int = 0


class Ask(NamedTuple):
    """Make an approval request; the caller waits for the answer. Reply: Answer."""

    request: ApprovalRequest
    notice: str = ""  # for the caller's stderr while it waits


class WouldWait(NamedTuple):
    """Find out whether the caller would have to wait for the answer. Reply: bool."""

    request: ApprovalRequest


class Look(NamedTuple):
    """Read what the call asks for, in a worker if that may take long. Repeated after a wait, since
    it may have changed. Reply: the family's facts."""


class Tell(NamedTuple):
    """Print a line on the caller's stderr."""

    text: str


class EndRun(NamedTuple):
    """End the run. The request is answered before, since its caller gets SIGTERM."""

    reason: LimitReached


# Sockets


class Reach(NamedTuple):
    """Make the call in the supervisor, on its duplicate of the caller's socket, with the judged
    address. Reply: Reached."""

    unrecorded: Unrecorded | None = None


class LookUpNames(NamedTuple):
    """Look up the host names in rules, unless just done. Reply: the names of the address."""

    address: bytes


class MakeSocket(NamedTuple):
    """Make a socket in the supervisor and give it to the caller as the answer. Reply: 0 or an
    errno."""

    unrecorded: Unrecorded | None = None


class Outside(NamedTuple):
    """The process that listens at the other end of a connection: outside the session, same user."""

    pid: int  # 0 if it is in another container
    start_time: int = 0
    comm: str = ""  # empty if it has ended
    argv: tuple[str, ...] = ()


class Reached(NamedTuple):
    value: int  # what the caller's call returns
    errno: int = 0  # or fails with
    outside: Outside | None = None  # the process at the other end, if it is outside the session


# Execs


class ExecTurn(NamedTuple):
    """Wait while the session is frozen, or another thread of the process is at an exec."""


class ReadBasis(NamedTuple):
    """Read what an approval rests on besides the facts; the exec stop compares it. Reply: Basis."""

    loading: tuple[str, ...] = ()  # read the variables that make programs of these names load code
    besides: tuple[str, ...] = ()  # more files; with them, the exec stop compares all variables


class TellWatchers(NamedTuple):
    """Report to the watchers that this exec or its replacement goes on."""

    facts: ExecFacts
    traced: bool
    is_replaced: bool = False


class Hold(NamedTuple):
    """Trace the caller until its exec is over, to verify it. Must follow ExecTurn. Reply: Held or
    CannotHold."""


class Held(Enum):
    YES = "yes"
    AGAIN = "it had to wait, and is to be asked for again"
    BY_ITS_TRACER = "a process in the session traces the caller, and waits until the exec ends"
    NO = "a process outside the session traces the caller"
    NOT_DUMPABLE = "sigwrap may not read the caller"


class CannotHold(NamedTuple):
    """The caller is traced, and sigwrap could not compare the loaded program before it runs.

    A policy that lets everything run lets it run unverified, unless `may_run` is False.
    """

    reason: str
    may_run: bool = True


class VerifyThenContinue(NamedTuple):
    """Let the exec go on, and compare what the kernel loads before it runs. Must follow Hold.
    Reply: ExecOutcome."""

    is_replacement: bool = False  # what was prepared in place of the command


class Ran(NamedTuple):
    """The right program was loaded, and runs."""


class KernelRefused(NamedTuple):
    """The kernel refused the exec."""

    errno: int


class LoadedOther(NamedTuple):
    """The kernel loaded another program than the judged one. It is stopped before its first
    instruction and never runs."""

    problem: str
    path: str
    argv: tuple[str, ...]


ExecOutcome = Ran | KernelRefused | LoadedOther


class ContinueWatched(NamedTuple):
    """Let the exec of a traced caller go on. While sigwrap holds the caller's tracer, it compares
    what the kernel loads before that runs. Reply: ExecOutcome, and Ran also if nothing was loaded.
    """


class Prepare(NamedTuple):
    """Find the replacement. Reply: Prepared or Unpreparable."""

    redirect: CommandRedirect
    argv: tuple[str, ...]
    rule: str


class PrepareStubCommand(NamedTuple):
    """Connect a stub command's streams to the supervisor. Reply: Prepared or Unpreparable."""


class PrepareStub(NamedTuple):
    """Give the caller a descriptor of the stub program, which waits in its place. Reply: Prepared
    or Unpreparable."""


class Prepared(NamedTuple):
    path: str
    argv: tuple[str, ...]
    readable: bool


class Unpreparable(NamedTuple):
    why: str


class Replace(NamedTuple):
    """Restart the caller's call with the replacement's path and arguments. Must follow Hold and
    Prepare. Reply: Restarted, KernelRefused or Tampered."""


class Restarted(NamedTuple):
    """The restarted call has arrived, and waits."""


class Tampered(NamedTuple):
    """A call has arrived and waits, but it is not the restarted one."""


# Signals


class SignalTarget(NamedTuple):
    pid: int
    start_time: int
    comm: str
    types: Types
    thread: int = 0  # the targeted thread, 0 if none

    @property
    def is_inside(self) -> bool:
        return TargetType.SESSION in self.types


class Send(NamedTuple):
    """Send the signal from the supervisor. Reply: 0 or an errno."""

    target: SignalTarget
    signal: int
    unrecorded: Unrecorded | None = None


class ContinueToChildren(NamedTuple):
    """Continue a signal that may end, stop or continue the sender's children. The sender then gets
    SIGCHLD, which must not interrupt its next call."""

    unrecorded: Unrecorded | None = None


class ChangeDescriptor(NamedTuple):
    """Make a call on the caller's descriptor from the supervisor: set its owner, which gets its
    signals, or have it signal the owner, or set a terminal's foreground group. `target` is the
    judged owner. Reply: 0 or an errno."""

    target: SignalTarget | None
    unrecorded: Unrecorded | None = None


class LetGo(NamedTuple):
    """Wait until sigwrap no longer traces the process, since it can have one tracer only. Reply:
    whether the caller has waited."""

    pid: int


class LookAgain(NamedTuple):
    """Check that the target is still the judged process. Reply: bool."""

    target: SignalTarget


# Forks


class ContinueFork(NamedTuple):
    """Continue, and count the child as one of this parent's until it is seen."""

    parent: Process


Effect = (
    Record
    | RecordRepeated
    | Continue
    | Fail
    | Succeed
    | Ask
    | WouldWait
    | ReadBasis
    | ExecTurn
    | Look
    | Tell
    | EndRun
    | TellWatchers
    | Hold
    | VerifyThenContinue
    | ContinueWatched
    | Prepare
    | PrepareStubCommand
    | PrepareStub
    | Replace
    | Send
    | ContinueToChildren
    | ChangeDescriptor
    | LetGo
    | LookAgain
    | LookUpNames
    | Reach
    | MakeSocket
    | ContinueFork
)


def refuse(event: str, payload: Payload, number: int = errno.EPERM) -> Steps:
    """Refuse a request that no mediator decides, with an event."""
    yield Record(event, payload)
    yield Fail(number)
