"""The end of a run. Every reason to end comes here; nothing else in the supervisor ends the process
tree.

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

Pure: Ending (session/ending.py) carries out what is decided here.
"""

from __future__ import annotations

import errno

from sigwrap import errors
from sigwrap.bare import TYPE_CHECKING, Enum, NamedTuple, signal
from sigwrap.events import Payload
from sigwrap.policy.judge.signals import signal_name

if TYPE_CHECKING:
    from sigwrap.session.ending import Ending

LEFTOVERS_GRACE_S = 2.0


class _State(Enum):
    RUNNING = "running"
    ENDING = "ending"
    CLEARING = "clearing"
    KILLING = "killing"
    OVER = "over"


class NotExecuted(NamedTuple):
    """The exec of the command failed."""

    errno: int
    why: str
    was_told: bool = False  # the user has read why


class LimitReached(NamedTuple):
    limit: str
    maximum: int | float
    why: str
    used: int | float | None = None  # None if unknown


class SwitchedOff(NamedTuple):
    """The kill switch is on."""

    reason: str
    by: str
    since_ns: int


class Result(NamedTuple):
    """The result of a run for sigwrap's caller and its user."""

    exit_status: int
    signal: int  # that ended the run; 0 if the status says something else
    reason: str


class RunEnd:
    def __init__(self, do: Ending, *, grace_s: float) -> None:
        self._do = do
        self._grace_s = grace_s
        self._state = _State.RUNNING
        self._interrupted_by = 0
        self.reached_limit: LimitReached | None = None
        self._terminated: tuple[str, bool] | None = None  # why, and whether for the budget
        self._killed_because = ""
        self._is_killed = False  # before the command ended
        self.switched_off: SwitchedOff | None = None
        self.not_executed: NotExecuted | None = None
        self._ended: tuple[int | None, int | None] | None = None  # exit code, signal

    @property
    def is_over(self) -> bool:
        return self._state is _State.OVER

    @property
    def kills(self) -> bool:
        return self._state is _State.KILLING

    @property
    def command_has_ended(self) -> bool:
        return self._ended is not None

    def command_ended(self, exit_code: int | None, killer: int | None) -> None:
        if self.is_over:
            return
        self._ended = exit_code, killer
        if not self.kills:
            self._state = _State.CLEARING
            self._do.terminate_descendants()
            self._do.let_run()
            self._do.wait(LEFTOVERS_GRACE_S)

    def interrupted(self, number: int) -> None:
        """SIGINT, SIGTERM, SIGHUP or SIGQUIT reached sigwrap for the first time.

        It may be reported after the end, and is still the reason for it.
        """
        self._interrupted_by = number
        if not self.is_over:
            self._do.stop_asking("sigwrap was interrupted")
            self._do.let_run()

    def interrupt_withdrawn(self) -> None:
        """The interrupt was for the command alone."""
        if self.is_over:
            return
        self._interrupted_by = 0
        if self._state is _State.RUNNING:
            self._do.ask_again()
            self._do.freeze_again()

    def will_end(self, reached: LimitReached) -> None:
        """Note the limit while the request that reached it is being denied. `limit_reached`
        follows. Whatever the command does until then counts as the limit's effect."""
        if self._state is _State.RUNNING and not self._interrupted_by:
            self.reached_limit = reached

    def limit_reached(self, reached: LimitReached) -> None:
        if self._state is _State.RUNNING:
            self._state = _State.ENDING
            if not self._interrupted_by:
                self.reached_limit = reached
            self._do.record("limit_exceeded", _exceeded(reached))
            # A SIGTERM follows SIGBUDGET, which ends the run as this does.
            self._do.signal_budget(reached)
            self._terminate("a limit was reached")
        elif reached is self.reached_limit and not self.is_over:
            self._do.record("limit_exceeded", _exceeded(reached))

    def terminate(self, why: str, *, is_for_budget: bool = False) -> None:
        """End the run for an agent signal. `is_for_budget`: it follows SIGBUDGET."""
        if self._state is _State.RUNNING:
            self._state = _State.ENDING
            if not self._interrupted_by:
                self._terminated = why, is_for_budget
            self._terminate("the session is ending")

    def kill(self, why: str) -> None:
        """Kill at once: a second interrupt, the grace period ended, the front process died, an
        agent signal."""
        if self.is_over:
            return
        self._killed_because = why
        self._is_killed = self._ended is None
        self._state = _State.KILLING
        self._do.record_with_count("interrupt_escalated", {"reason": why})
        self._do.kill_tree()

    def switch_off(self, switched: SwitchedOff) -> None:
        """Kill at once, and grant nothing more."""
        if self.switched_off is not None or self.is_over:
            return
        self.switched_off = switched
        self._state = _State.KILLING
        self._do.record_with_count("killswitch_activated", switched._asdict())
        self._do.stop_asking("the kill switch is on")
        self._do.grant_nothing()
        self._do.kill_tree()

    def grace_over(self) -> None:
        """The time of the last wait has passed."""
        if self._state not in (_State.KILLING, _State.OVER):
            self._state = _State.KILLING
            self._do.kill_tree()

    def no_process_is_left(self) -> None:
        self._state = _State.OVER

    def _terminate(self, why: str) -> None:
        self._do.stop_asking(why)
        self._do.terminate_command()
        self._do.let_run()
        self._do.wait(self._grace_s)

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
            why, is_for_budget = self._terminated
            if is_for_budget:
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


def _exceeded(reached: LimitReached) -> Payload:
    payload: Payload = {
        "limit": reached.limit,
        "maximum": reached.maximum,
        "effect": "terminated",
        "reason": reached.why,
    }
    if reached.used is not None:
        payload["used"] = reached.used
    return payload
