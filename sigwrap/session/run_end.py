"""The end of a run. Every reason to end comes here; nothing else ends the process tree.

                 command ended                     grace period over
    RUNNING ────────────────────► CLEARING ────────────────────────┐
       │                              ▲                            ▼
       │ a limit, a SIGTERM           │ command ended           KILLING ──► OVER
       ├─────────► ENDING ────────────┘                            ▲   no process is left
       │              │ grace period over, or a second reason      │
       └──────────────┴────────────────────────────────────────────┘
         kills at once: a second interrupt, the front process died, the kill switch, a SIGKILL

SIGTERM and SIGKILL are agent signals here, to the whole session.

The first interrupt is no state here: the front process decides which signal the command gets, and
reports it. The interrupt decides the exit status and closes approval requests.

Pure: a Happening goes in, steps come out (session/ending.py carries them out). A step may record an
event; a Happening is none.
"""

from __future__ import annotations

import errno

from sigwrap import errors
from sigwrap.bare import Enum, NamedTuple, signal
from sigwrap.events import Payload
from sigwrap.policy.judge.signals import signal_name

LEFTOVERS_GRACE_S = 2.0


class _State(Enum):
    RUNNING = "running"
    ENDING = "ending"
    CLEARING = "clearing"
    KILLING = "killing"
    OVER = "over"


# What happens to a run


class CommandNotExecuted(NamedTuple):
    errno: int
    why: str
    was_told: bool = False  # the user has read why


class CommandEnded(NamedTuple):
    exit_code: int | None
    signal: int | None  # that killed it


class Interrupted(NamedTuple):
    """SIGINT, SIGTERM, SIGHUP or SIGQUIT reached sigwrap for the first time."""

    signal: int


class Withdrawn(NamedTuple):
    """The interrupt was for the command alone."""


class LimitReached(NamedTuple):
    limit: str
    maximum: int | float
    why: str
    used: int | float | None = None  # None if unknown


class TerminationDemanded(NamedTuple):
    """An agent signal asks to end the run."""

    why: str
    is_for_budget: bool = False  # it follows SIGBUDGET


class KillDemanded(NamedTuple):
    """Kill at once: a second interrupt, the grace period ended, or the front process died."""

    why: str


class SwitchedOff(NamedTuple):
    """The kill switch is on: kill at once, and grant nothing more."""

    reason: str
    by: str
    since_ns: int


class GraceOver(NamedTuple):
    """The time of the last Wait has passed."""


class NoProcessLeft(NamedTuple):
    pass


Happening = (
    CommandNotExecuted
    | CommandEnded
    | Interrupted
    | Withdrawn
    | LimitReached
    | TerminationDemanded
    | KillDemanded
    | SwitchedOff
    | GraceOver
    | NoProcessLeft
)


# The steps that follow


class RecordEvent(NamedTuple):
    event: str
    payload: Payload
    counts_processes: bool = False  # in a field of the payload


class SignalBudget(NamedTuple):
    """Send SIGBUDGET for a limit. A SIGTERM follows, which ends the run as the steps here do."""

    reached: LimitReached


class StopAsking(NamedTuple):
    """Deny open approval requests. A waiting caller may block the signal that should end it."""

    why: str


class Wait(NamedTuple):
    """Wait until GraceOver. Replaces an earlier Wait."""

    seconds: float


class Do(Enum):
    """Steps that need no more than their names."""

    GRANT_NOTHING = "deny every request from now on"
    ASK_AGAIN = "allow approval requests again"
    LET_RUN = "thaw a frozen tree and release held execs: they could not end otherwise"
    FREEZE_AGAIN = "freeze the tree again that LET_RUN thawed: the run goes on after all"
    TERMINATE_COMMAND = "send SIGTERM to the command"
    TERMINATE_DESCENDANTS = "send SIGTERM to every process of the tree"
    KILL_TREE = "kill the whole tree, and let no process fork"


Step = RecordEvent | SignalBudget | StopAsking | Wait | Do


class Result(NamedTuple):
    """The result of a run for sigwrap's caller and its user."""

    exit_status: int
    signal: int  # that ended the run; 0 if the status says something else
    reason: str


class RunEnd:
    def __init__(self, *, grace_s: float) -> None:
        self._grace_s = grace_s
        self._state = _State.RUNNING
        self._interrupted_by = 0
        self.reached_limit: LimitReached | None = None
        self._terminated: TerminationDemanded | None = None
        self._killed_because = ""
        self._is_killed = False  # before the command ended
        self.switched_off: SwitchedOff | None = None
        self.not_executed: CommandNotExecuted | None = None
        self._ended: CommandEnded | None = None

    @property
    def is_over(self) -> bool:
        return self._state is _State.OVER

    @property
    def kills(self) -> bool:
        return self._state is _State.KILLING

    @property
    def command_has_ended(self) -> bool:
        return self._ended is not None

    def will_end(self, reached: LimitReached) -> None:
        """Note the limit while the request that reached it is being denied. LimitReached follows.
        Whatever the command does until then counts as the limit's effect."""
        if self._state is _State.RUNNING and not self._interrupted_by:
            self.reached_limit = reached

    def on(self, happening: Happening) -> tuple[Step, ...]:
        if isinstance(happening, Interrupted):
            # An interrupt may be reported after the end. It is still the reason for it.
            self._interrupted_by = happening.signal
        if self._state is _State.OVER:
            return ()
        match happening:
            case CommandNotExecuted():
                self.not_executed = happening
                return ()
            case CommandEnded():
                return self._command_ended(happening)
            case Interrupted():
                return (StopAsking("sigwrap was interrupted"), Do.LET_RUN)
            case Withdrawn():
                self._interrupted_by = 0
                return (Do.ASK_AGAIN, Do.FREEZE_AGAIN) if self._state is _State.RUNNING else ()
            case LimitReached():
                return self._limit_reached(happening)
            case TerminationDemanded():
                return self._termination_demanded(happening)
            case KillDemanded():
                self._killed_because = happening.why
                self._is_killed = self._ended is None
                killed = RecordEvent(
                    "interrupt_escalated", {"reason": happening.why}, counts_processes=True
                )
                return (killed, *self._kill())
            case SwitchedOff():
                return self._switched_off(happening)
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
        return (Do.TERMINATE_DESCENDANTS, Do.LET_RUN, Wait(LEFTOVERS_GRACE_S))

    def _limit_reached(self, reached: LimitReached) -> tuple[Step, ...]:
        if self._state is not _State.RUNNING:
            return (_exceeded(reached),) if reached is self.reached_limit else ()
        self._state = _State.ENDING
        if not self._interrupted_by:
            self.reached_limit = reached
        return (
            _exceeded(reached),
            SignalBudget(reached),
            *self._terminate("a limit was reached"),
        )

    def _termination_demanded(self, demanded: TerminationDemanded) -> tuple[Step, ...]:
        if self._state is not _State.RUNNING:
            return ()
        self._state = _State.ENDING
        if not self._interrupted_by:
            self._terminated = demanded
        return self._terminate("the session is ending")

    def _terminate(self, why: str) -> tuple[Step, ...]:
        return (StopAsking(why), Do.TERMINATE_COMMAND, Do.LET_RUN, Wait(self._grace_s))

    def _switched_off(self, switched: SwitchedOff) -> tuple[Step, ...]:
        if self.switched_off is not None:
            return ()
        self.switched_off = switched
        return (
            RecordEvent("killswitch_activated", switched._asdict(), counts_processes=True),
            StopAsking("the kill switch is on"),
            Do.GRANT_NOTHING,
            *self._kill(),
        )

    def _kill(self) -> tuple[Step, ...]:
        self._state = _State.KILLING
        return (Do.KILL_TREE,)

    def result(self) -> Result:
        if self.switched_off is not None:
            why = f": {self.switched_off.reason}" if self.switched_off.reason else ""
            return Result(errors.REFUSED, 0, f"killed by the kill switch{why}")
        result = self._result()
        if self._killed_because:
            return result._replace(reason=f"killed: {self._killed_because}")
        return result

    def _result(self) -> Result:
        if self.reached_limit is not None:
            return Result(errors.LIMIT_REACHED, 0, self.reached_limit.why)
        if self._terminated is not None:
            why = self._terminated.why
            if self._terminated.is_for_budget:
                return Result(errors.LIMIT_REACHED, 0, why)
            return Result(errors.INTERRUPTED, signal.SIGTERM, why)
        if self._interrupted_by:
            return Result(errors.INTERRUPTED, self._interrupted_by, "interrupted")
        code, killer = (None, None) if self._ended is None else self._ended
        if self.not_executed is not None:
            is_missing = self.not_executed.errno == errno.ENOENT
            status = errors.NOT_FOUND if is_missing else errors.NOT_EXECUTABLE
            why = f"{errors.COMMAND_NOT_RUN}: {self.not_executed.why}"
            return Result(status, killer or 0, why)
        if self._ended is None:
            return Result(errors.REFUSED, 0, errors.COMMAND_ENDED)
        if killer is not None:
            why = f"the command died of {signal_name(killer)}"
            return Result(errors.from_signal(killer), killer, why)
        # It may have ended by itself just before the kill.
        status = errors.from_signal(signal.SIGKILL) if self._is_killed else code or 0
        return Result(status, 0, errors.COMMAND_ENDED)


def _exceeded(reached: LimitReached) -> RecordEvent:
    payload = {
        "limit": reached.limit,
        "maximum": reached.maximum,
        "effect": "terminated",
        "reason": reached.why,
    }
    if reached.used is not None:
        payload["used"] = reached.used
    return RecordEvent("limit_exceeded", payload)
