"""Carry out what session/run_end.py decides. Nothing else ends the command or kills the tree."""

from __future__ import annotations

import os

from sigwrap.bare import TYPE_CHECKING
from sigwrap.kernel import process as linux_process
from sigwrap.session.run_end import (
    CommandEnded,
    Do,
    GraceOver,
    Happening,
    NoProcessLeft,
    RecordEscalation,
    RecordKillSwitch,
    RecordLimit,
    RunEnd,
    SignalBudget,
    Step,
    StopAsking,
    Wait,
)

if TYPE_CHECKING:
    from sigwrap.session.session import Session

_SWEEP_S = 0.5


class Ending:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._command_pid = session.command_pid
        self._recorder = session.recorder
        self._approvals = session.approvals
        self._loop = session.loop
        self._waits = 0
        self._descendants = linux_process.Sweep(self.reaped)
        self.run = RunEnd(grace_s=session.settings.grace_s)

    def on(self, happening: Happening) -> None:
        for step in self.run.on(happening):
            self._take(step)

    def reaped(self, pid: int, wait_status: int) -> None:
        self._session.processes.reaped(pid, wait_status)
        if pid != self._command_pid:
            return
        self._session.job_control.continue_front()
        # This limit may be detected only after the command has ended.
        usage = self._session.usage
        reached = None if usage is None else usage.limit_at_end()
        if reached is not None:
            self.run.will_end(reached)
        if os.WIFSIGNALED(wait_status):
            self.on(CommandEnded(None, os.WTERMSIG(wait_status)))
        else:
            self.on(CommandEnded(os.WEXITSTATUS(wait_status), None))
        if reached is not None:
            self.on(reached)

    def no_child_is_left(self) -> None:
        """End the run: orphans become children of the supervisor, so the tree is empty."""
        self._loop.turn(0)  # handle the last ends, which are events already
        self.on(NoProcessLeft())

    def _take(self, step: Step) -> None:
        mediation = self._session.mediation
        match step:
            case RecordLimit(reached=reached):
                payload = {
                    "limit": reached.limit,
                    "maximum": reached.maximum,
                    "effect": "terminated",
                    "reason": reached.why,
                }
                if reached.used is not None:
                    payload["used"] = reached.used
                self._recorder.record("limit_exceeded", self._command_pid, payload)
            case SignalBudget(reached=reached):
                self._session.agent_signals.limit_reached(reached)
            case RecordEscalation(why=why):
                alive = len(self._descendants.alive())
                payload = {"reason": why, "processes": alive}
                self._recorder.record("interrupt_escalated", self._command_pid, payload)
            case RecordKillSwitch(switched=switched):
                payload = {
                    "reason": switched.reason,
                    "by": switched.by,
                    "since_ns": switched.since_ns,
                    "processes": len(self._descendants.alive()),
                }
                self._recorder.record("killswitch_activated", self._command_pid, payload)
            case Do.GRANT_NOTHING:
                if mediation is not None:
                    mediation.performer.grant_nothing()
            case StopAsking(why=why):
                self._approvals.stop_asking(why)
            case Do.ASK_AGAIN:
                self._approvals.ask_again()
            case Do.LET_RUN:
                self._session.freezing.let_run()
            case Do.FREEZE_AGAIN:
                self._session.agent_signals.freeze_again()
            case Do.TERMINATE_COMMAND:
                linux_process.terminate(self._command_pid)
            case Do.TERMINATE_DESCENDANTS:
                for pid in self._descendants.alive():
                    linux_process.terminate(pid)
            case Wait(seconds=seconds):
                self._wait(seconds)
            case Do.KILL_TREE:
                if mediation is not None:
                    mediation.forks.stop()
                self._kill_tree()

    def _wait(self, seconds: float) -> None:
        self._waits += 1
        this_one = self._waits

        def over() -> None:
            if this_one == self._waits:
                self.on(GraceOver())

        self._loop.call_in(seconds, over)

    def _kill_tree(self) -> None:
        """Kill in short turns, so that the loop goes on meanwhile."""
        if not self._descendants.run(timeout_s=_SWEEP_S):
            self._loop.call_in(0, self._kill_tree)
        elif self._descendants.unkillable:  # the front process also tries, and names them
            self.on(NoProcessLeft())
