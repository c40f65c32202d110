"""What a mediator yields, and what it gets back.

A mediator is a generator: it gets facts, yields effects one by one, and is resumed with the reply
to each. The performer (run/perform.py) carries effects out. Waiting for a person, or for an exec to
be over, is a generator that has not been resumed yet. Where the caller is gone, the generator is
closed instead of resumed, so no mediator needs to ask whether somebody still waits.

    Record(…)            reply: Logged           an event is appended to the log
    Continue(), Fail(…)  reply: None             the kernel gets its answer

The performer refuses an answer for which no event was recorded. The exceptions are `Unrecorded`:
an answer names its own.

Named tuples, not dataclasses: some are made for every exec and signal, at a third of the time.
"""

from __future__ import annotations

from collections.abc import Generator

from sigwrap.bare.enum import Enum, IntEnum
from sigwrap.events import Payload
from sigwrap.hints import Any
from sigwrap.mediate.exec_facts import ExecFacts
from sigwrap.mediate.lineage import Process, Types
from sigwrap.mediate.questions import Question
from sigwrap.mediate.run_end import LimitReached
from sigwrap.policy.judge.request import CommandRedirect, TargetType
from sigwrap.tuples import NamedTuple

Mediation = Generator["Effect", Any, None]
Judgement = Generator["Effect", Any, bool]  # a part of one, which says whether to go on


class Logged(IntEnum):
    """What came of an event; false where it could not be written."""

    FAILED = 0
    WRITTEN = 1
    COUNTED = 2  # it repeats one that is in the log, and a later event has the count


class Escalation(NamedTuple):
    """A rule with `escalate` has decided: SIGPOLICY is sent, once the event is recorded."""

    rule: str
    what: str  # was asked


class Record(NamedTuple):
    """Reply: Logged."""

    event: str
    payload: Payload
    escalation: Escalation | None = None


class RecordRepeated(NamedTuple):
    """The first of its key is recorded; those that follow within the time are one event more, with
    their count. Reply: Logged."""

    event: str
    payload: Payload
    key: tuple[object, ...]
    within_s: float
    escalation: Escalation | None = None


class Unrecorded(Enum):
    """Why an answer needs no event."""

    NOTHING_HAPPENS = "the kernel would refuse the call as well, and nothing takes effect"
    REACHES_NOBODY = "by its registers the call can reach no process"
    ONLY_ASKS = "the call only reads"
    STAYS_INSIDE = "it concerns the caller alone, or what is the session's own"
    RULE_IS_UNLOGGED = "the rule says log: false"
    MOUNT_IS_FREE = "no rule speaks of mounts"
    FILE_IS_FREE = "no rule audits what is done with the file"
    FORK_IS_FREE = "no rule speaks of a fork that is within the limits"


class Continue(NamedTuple):
    """The kernel goes on with the call: only where its arguments are registers."""

    unrecorded: Unrecorded | None = None


class Fail(NamedTuple):
    errno: int
    unrecorded: Unrecorded | None = None


class Succeed(NamedTuple):
    """The caller sees this value, and the kernel does nothing."""

    unrecorded: Unrecorded | None = None
    value: int = 0


class Ask(NamedTuple):
    """The caller waits until somebody has answered. Reply: Answer."""

    question: Question
    notice: str = ""  # for the caller's stderr while it waits


class WouldWait(NamedTuple):
    """Whether the caller would have to wait for the answer. Reply: bool."""

    question: Question


class ReadContent(NamedTuple):
    """What is in the files that the exec would run; the exec stop holds what is loaded against it.
    Reply: a text for each of them. With `besides`, these files' texts follow; nothing is replied
    where one of them can't be had."""

    besides: tuple[str, ...] = ()


class ReadEnvironment(NamedTuple):
    """What variables the exec would pass on. `stays`: the exec stop holds what is passed on against
    it. Reply: a text that is another for others, empty where they can't be read."""

    stays: bool = False


class ReadLoaded(NamedTuple):
    """Which variables of the exec make programs called `names` load code, each with its value; the
    exec stop holds what is passed on against them. Reply: texts, None where they can't be read."""

    names: tuple[str, ...]


class ReadWhereabouts(NamedTuple):
    """Where the exec would run, which the exec stop holds where it runs against; and whether the
    caller is watched. Reply: Whereabouts."""


class Whereabouts(NamedTuple):
    folder: str  # by its path; empty where that is too long to be told
    identity: str  # of the root and the folder: neither's path says which it is
    are_ours: bool  # a path leads there where it leads whoever is asked
    is_covered: bool = False  # but the folder's, over which something is mounted
    traced: bool = False  # the caller, by somebody else than sigwrap


NOWHERE = Whereabouts("", "", False)  # it can't be read


class Turn(NamedTuple):
    """The request waits while the session stands still, and while another thread of its process is
    at an exec."""


class Look(NamedTuple):
    """What the call asks for is read, by a worker where that may take long. After a wait it is read
    again: others had the time to change it. Reply: the family's facts."""


class TakeDigests(NamedTuple):
    """The digests are taken that the rules ask for, by a worker where the files are large. Reply:
    whether it has them."""


class Tell(NamedTuple):
    """A line on the caller's stderr."""

    text: str


class EndRun(NamedTuple):
    reason: LimitReached


# Sockets


class Reach(NamedTuple):
    """The call is made by the supervisor, on its duplicate of the caller's socket, with the address
    that was judged. Reply: Reached."""

    unrecorded: Unrecorded | None = None


class LookUpNames(NamedTuple):
    """The names that rules are about are looked up, where they have not just been. Reply: those
    that the address has."""

    address: bytes


class MakeSocket(NamedTuple):
    """The supervisor makes one, and the caller gets it as its answer. Reply: 0 or an errno."""

    unrecorded: Unrecorded | None = None


class Outside(NamedTuple):
    """The process that listens at the other end of a connection: outside the session, and of the
    same user."""

    pid: int  # 0: in another container
    start_time: int = 0
    comm: str = ""  # empty if it has ended
    argv: tuple[str, ...] = ()


class Reached(NamedTuple):
    value: int  # what the caller's call returns
    errno: int = 0  # or fails with
    outside: Outside | None = None  # whom a connection has reached


# Execs


class TellWatchers(NamedTuple):
    """This exec goes on, or its replacement does."""

    facts: ExecFacts
    traced: bool
    is_replaced: bool = False


class Hold(NamedTuple):
    """The caller is traced until its exec is over, so that the exec can be verified. After Turn.
    Reply: Held or CannotHold."""


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


class Image(Enum):
    ASKED = "what the caller asked for"
    REPLACEMENT = "what was prepared in its place"


class VerifyThenContinue(NamedTuple):
    """The exec goes on, and what the kernel loads is compared before it runs. After Hold only.
    Reply: ExecOutcome."""

    image: Image


class Ran(NamedTuple):
    """The right program was loaded, and runs."""


class KernelRefused(NamedTuple):
    """The exec failed."""

    errno: int


class LoadedOther(NamedTuple):
    """Another program was loaded than the one that was judged. It stands before its first
    instruction, and does not get any further than that."""

    problem: str
    path: str
    argv: tuple[str, ...]


ExecOutcome = Ran | KernelRefused | LoadedOther


class ContinueWatched(NamedTuple):
    """Let the exec of a traced caller go on. While sigwrap holds the caller's tracer, it compares
    what the kernel loads before that runs. Reply: ExecOutcome, and Ran also if nothing was loaded.
    """


class Prepare(NamedTuple):
    """Finds the replacement. Reply: Prepared or Unpreparable."""

    redirect: CommandRedirect
    argv: tuple[str, ...]
    rule: str


class PrepareStubCommand(NamedTuple):
    """The caller is a stub's child: the streams of its command are tied to the supervisor. Reply:
    Prepared or Unpreparable."""


class PrepareStub(NamedTuple):
    """The caller gets a descriptor of the program that waits in its place. Reply: Prepared or
    Unpreparable."""


class Prepared(NamedTuple):
    path: str
    argv: tuple[str, ...]
    readable: bool


class Unpreparable(NamedTuple):
    why: str


class Replace(NamedTuple):
    """The caller's call is restarted with the replacement's path and arguments. After Hold and
    Prepare. Reply: Restarted, KernelRefused or Tampered."""


class Restarted(NamedTuple):
    """The new call has come, and waits."""


class Tampered(NamedTuple):
    """A call has come and waits, but it isn't the one that was made."""


# Signals


class SignalTarget(NamedTuple):
    pid: int
    start_time: int
    comm: str
    types: Types
    thread: int = 0  # which of its threads is meant, where one is

    @property
    def is_inside(self) -> bool:
        return TargetType.SESSION in self.types


class Send(NamedTuple):
    """The supervisor sends it in the sender's place. Reply: 0 or an errno."""

    target: SignalTarget
    signal: int
    unrecorded: Unrecorded | None = None


class ContinueToChildren(NamedTuple):
    """Continue, with a signal that may end, stop or continue children of the sender: it will get
    SIGCHLD for that, which must not break off its next call."""

    unrecorded: Unrecorded | None = None


class SetOwner(NamedTuple):
    """The supervisor sets whom a descriptor's signals go to, or that they go to nobody. Reply: 0 or
    an errno."""

    target: SignalTarget | None
    unrecorded: Unrecorded | None = None


class SetAsync(NamedTuple):
    """The supervisor has a descriptor signal its owner, which is this one where it has none yet;
    or has it do so by another signal. Reply: 0 or an errno."""

    owner: SignalTarget | None
    unrecorded: Unrecorded | None = None


class SetForeground(NamedTuple):
    """The supervisor gives a group the terminal. Reply: 0 or an errno."""

    group: int
    unrecorded: Unrecorded | None = None


class SetLimits(NamedTuple):
    """The supervisor sets limits of the target, as they were judged. Reply: 0 or an errno."""

    target: SignalTarget
    unrecorded: Unrecorded | None = None


class LetGo(NamedTuple):
    """A process can have one tracer. Where sigwrap traces it for a moment, the caller waits for the
    end of that. Reply: whether it has waited."""

    pid: int


class LookAgain(NamedTuple):
    """Is it still the process that was judged? Reply: bool."""

    target: SignalTarget


# Forks


class CountChildren(NamedTuple):
    """Reply: Counted."""

    parent: Process


class CountTree(NamedTuple):
    """Reply: Counted."""


class Counted(NamedTuple):
    number: int
    started_s: float
    ended_s: float


class ContinueFork(NamedTuple):
    """Continue, and until the child is seen it counts as one of this parent's."""

    parent: Process


Effect = (
    Record
    | RecordRepeated
    | Continue
    | Fail
    | Succeed
    | Ask
    | WouldWait
    | ReadContent
    | ReadEnvironment
    | ReadLoaded
    | ReadWhereabouts
    | Turn
    | Look
    | TakeDigests
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
    | SetOwner
    | SetAsync
    | SetForeground
    | SetLimits
    | LetGo
    | LookAgain
    | LookUpNames
    | Reach
    | MakeSocket
    | CountChildren
    | CountTree
    | ContinueFork
)
