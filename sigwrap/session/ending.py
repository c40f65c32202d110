"""The end of a run: what wait(2) reports, and the steps that session/run_end.py decides.

The supervisor is the subreaper of its tree, so wait(2) reports each end to it, and also stops.
Nothing but Ending ends the command or kills the tree.
"""

from __future__ import annotations

import os
import time

from sigwrap.bare import TYPE_CHECKING
from sigwrap.kernel import process as linux_process
from sigwrap.kernel import ptrace
from sigwrap.kernel.ptrace import WALL
from sigwrap.session import run_end
from sigwrap.session.run_end import Do, RunEnd

if TYPE_CHECKING:
    from sigwrap.session.session import Session

_ENDS_AND_STOPS = os.WNOHANG | os.WUNTRACED | os.WCONTINUED | WALL
_CHILDREN_A_TURN = 64
_EXEC_STOP_COMES_WITHIN_NS = 300_000
_SWEEP_S = 0.5


class Children:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._command_pid = session.command_pid
        self._mediation = session.mediation
        self._ending = session.ending
        self._loop = session.loop
        self._signals = session.child_signals
        self._loop.watch(self._signals.fd, self._on_signal)

    def await_exec_stop(self) -> None:
        """Wait a moment for an exec stop. It usually comes sooner than the supervisor could sleep
        and wake up, and sched_yield lets other processes run meanwhile."""
        until_ns = time.perf_counter_ns() + _EXEC_STOP_COMES_WITHIN_NS
        while time.perf_counter_ns() < until_ns:
            os.sched_yield()
            if self._signals.read():
                self.take()
                return

    def _on_signal(self, _happened: int) -> None:
        self._signals.read()
        self.take()

    def take(self) -> None:
        for _ in range(_CHILDREN_A_TURN):
            try:
                pid, wait_status = os.waitpid(-1, _ENDS_AND_STOPS)
            except ChildProcessError:
                self._ending.no_child_is_left()
                return
            if pid == 0:
                return
            self.on_status(pid, wait_status)
        # Fast ends of children must not keep other requests waiting.
        self._loop.call_in(0, self.take)

    def on_status(self, pid: int, wait_status: int) -> None:
        if os.WIFSTOPPED(wait_status) or os.WIFCONTINUED(wait_status):
            self._on_stop(pid, wait_status)
        else:
            self._on_end(pid, wait_status)

    def _on_stop(self, pid: int, wait_status: int) -> None:
        if self._mediation is not None and self._mediation.on_stop(pid, wait_status):
            return
        if os.WIFSTOPPED(wait_status) and ptrace.let_go_unasked(pid, os.WSTOPSIG(wait_status)):
            return
        if pid == self._command_pid:
            self._session.job_control.mirror(wait_status)
            if os.WIFCONTINUED(wait_status):
                self._session.freezing.freeze_continued()

    def _on_end(self, pid: int, wait_status: int) -> None:
        if self._mediation is not None:
            self._mediation.on_end(pid)
        self._ending.reaped(pid, wait_status)


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

    def on(self, happening: run_end.Happening) -> None:
        for step in self.run.on(happening):
            self._carry_out(step)

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
            self.on(run_end.CommandEnded(None, os.WTERMSIG(wait_status)))
        else:
            self.on(run_end.CommandEnded(os.WEXITSTATUS(wait_status), None))
        if reached is not None:
            self.on(reached)

    def no_child_is_left(self) -> None:
        """End the run: orphans become children of the supervisor, so the tree is empty."""
        self._loop.turn(0)  # handle the last ends, which are events already
        self.on(run_end.NoProcessLeft())

    def _carry_out(self, step: run_end.Step) -> None:
        mediation = self._session.mediation
        match step:
            case run_end.RecordEvent(event, payload, counts_processes):
                if counts_processes:
                    payload = {**payload, "processes": len(self._descendants.alive())}
                self._recorder.record(event, self._command_pid, payload)
            case run_end.SignalBudget(reached=reached):
                self._session.agent_signals.limit_reached(reached)
            case Do.GRANT_NOTHING:
                if mediation is not None:
                    mediation.performer.grant_nothing()
            case run_end.StopAsking(why=why):
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
            case run_end.Wait(seconds=seconds):
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
                self.on(run_end.GraceOver())

        self._loop.call_in(seconds, over)

    def _kill_tree(self) -> None:
        """Kill in short turns, so that the loop goes on meanwhile."""
        if not self._descendants.run(timeout_s=_SWEEP_S):
            self._loop.call_in(0, self._kill_tree)
        elif self._descendants.unkillable:  # the front process also tries, and names them
            self.on(run_end.NoProcessLeft())
