"""How a run ends: every reason to end comes here, and nothing else ends the tree.

                 COMMAND ended                     its grace is over
    RUNNING ────────────────────► CLEARING ────────────────────────┐
       │                              ▲                            ▼
       │ a limit                      │ COMMAND ended           KILLING ──► OVER
       ├─────────► ENDING ────────────┘                            ▲   no process is left
       │              │ the grace is over, or a second reason      │
       └──────────────┴────────────────────────────────────────────┘
         what kills at once: a second interrupt, the front process died

The first interrupt is not a state here: the front process decides what COMMAND gets of it, and says
so. It decides the exit status, and that nobody is asked any more.

Pure: what happens goes in, what is to be done comes out (run/ending.py does it).
"""

from __future__ import annotations

import errno
from enum import Enum

from sigwrap import status
from sigwrap.policy.judge.signals import signal_name
from sigwrap.tuples import NamedTuple

LEFTOVERS_GRACE_S = 2.0


class _State(Enum):
    RUNNING = "running"
    ENDING = "ending"
    CLEARING = "clearing"
    KILLING = "killing"
    OVER = "over"


# What happens


class CommandNotExecuted(NamedTuple):
    errno: int
    why: str


class CommandEnded(NamedTuple):
    exit_code: int | None
    signal: int | None  # that it died of


class Interrupted(NamedTuple):
    """SIGINT, SIGTERM, SIGHUP or SIGQUIT reached sigwrap for the first time."""

    signal: int


class Withdrawn(NamedTuple):
    """The interrupt was COMMAND's own affair."""


class LimitReached(NamedTuple):
    limit: str
    maximum: int | float
    why: str


class KillDemanded(NamedTuple):
    """At once: a second interrupt, the end of the grace, the death of the front process."""

    why: str


class GraceOver(NamedTuple):
    """A time that Wait asked for."""


class NoProcessLeft(NamedTuple):
    pass


Happening = (
    CommandNotExecuted
    | CommandEnded
    | Interrupted
    | Withdrawn
    | LimitReached
    | KillDemanded
    | GraceOver
    | NoProcessLeft
)


# What is to be done


class RecordLimit(NamedTuple):
    reached: LimitReached


class RecordEscalation(NamedTuple):
    why: str


class StopAsking(NamedTuple):
    """Open requests for approval are answered with no: a caller that waits for an answer can't be
    ended by a signal that it blocks."""

    why: str


class AskAgain(NamedTuple):
    """Whoever wants to know from now on."""


class TerminateCommand(NamedTuple):
    pass


class TerminateDescendants(NamedTuple):
    pass


class Wait(NamedTuple):
    """Until GraceOver. It takes the place of one that isn't over yet."""

    seconds: float


class KillTree(NamedTuple):
    """All of it, and no process may be made any more."""


Step = (
    RecordLimit
    | RecordEscalation
    | StopAsking
    | AskAgain
    | TerminateCommand
    | TerminateDescendants
    | Wait
    | KillTree
)


class RunEnd:
    def __init__(self, *, grace_s: float) -> None:
        self._grace_s = grace_s
        self._state = _State.RUNNING
        self._interrupted_by = 0
        self._limit: LimitReached | None = None
        self._killed_because = ""
        self._not_executed: CommandNotExecuted | None = None
        self._ended: CommandEnded | None = None

    @property
    def is_over(self) -> bool:
        return self._state is _State.OVER

    @property
    def command_has_ended(self) -> bool:
        return self._ended is not None

    def will_end(self, reached: LimitReached) -> None:
        """In the middle of a request that is denied for it, where nothing more can be done:
        LimitReached follows, and what COMMAND does until then comes of the limit."""
        if self._state is _State.RUNNING and not self._interrupted_by:
            self._limit = reached

    def on(self, happening: Happening) -> tuple[Step, ...]:
        if isinstance(happening, Interrupted):
            # It may be heard of when all is over, and is why COMMAND ended all the same.
            self._interrupted_by = happening.signal
        if self._state is _State.OVER:
            return ()
        match happening:
            case CommandNotExecuted():
                self._not_executed = happening
                return ()
            case CommandEnded():
                return self._command_ended(happening)
            case Interrupted():
                return (StopAsking("sigwrap was interrupted"),)
            case Withdrawn():
                self._interrupted_by = 0
                return (AskAgain(),) if self._state is _State.RUNNING else ()
            case LimitReached():
                return self._limit_reached(happening)
            case KillDemanded():
                self._killed_because = happening.why
                return (RecordEscalation(happening.why), *self._kill())
            case GraceOver():
                return self._kill() if self._state is not _State.KILLING else ()
            case NoProcessLeft():
                self._state = _State.OVER
                return ()

    def _command_ended(self, ended: CommandEnded) -> tuple[Step, ...]:
        self._ended = ended
        if self._state is _State.KILLING:
            return ()
        self._state = _State.CLEARING
        return (TerminateDescendants(), Wait(LEFTOVERS_GRACE_S))

    def _limit_reached(self, reached: LimitReached) -> tuple[Step, ...]:
        if self._state is not _State.RUNNING:
            return (RecordLimit(reached),) if reached is self._limit else ()
        self._state = _State.ENDING
        if not self._interrupted_by:
            self._limit = reached
        return (
            RecordLimit(reached),
            StopAsking("a limit was reached"),
            TerminateCommand(),
            Wait(self._grace_s),
        )

    def _kill(self) -> tuple[Step, ...]:
        self._state = _State.KILLING
        return (KillTree(),)

    # What the run was

    @property
    def not_executed(self) -> CommandNotExecuted | None:
        return self._not_executed

    @property
    def reached_limit(self) -> LimitReached | None:
        return self._limit

    @property
    def exit_status(self) -> int:
        if self._limit is not None:
            return status.LIMIT_REACHED
        if self._interrupted_by:
            return status.INTERRUPTED
        if self._not_executed is not None:
            is_missing = self._not_executed.errno == errno.ENOENT
            return status.NOT_FOUND if is_missing else status.NOT_EXECUTABLE
        if self._ended is None:
            return status.REFUSED
        if self._ended.signal is not None:
            return status.from_signal(self._ended.signal)
        return self._ended.exit_code or 0

    @property
    def signal(self) -> int:
        """By which the run ended; 0 where its status says something else."""
        if self._limit is not None:
            return 0
        if self._interrupted_by:
            return self._interrupted_by
        return 0 if self._ended is None else self._ended.signal or 0

    @property
    def reason(self) -> str:
        if self._killed_because:
            return f"killed: {self._killed_because}"
        if self._limit is not None:
            return self._limit.why
        if self._interrupted_by:
            return "interrupted"
        if self._not_executed is not None:
            return f"COMMAND could not be executed: {self._not_executed.why}"
        if self._ended is not None and self._ended.signal is not None:
            return f"COMMAND died of {signal_name(self._ended.signal)}"
        return "COMMAND ended"
