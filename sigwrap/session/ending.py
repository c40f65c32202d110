"""The end of a run: what wait(2) reports, and what session/run_end.py decides.

The supervisor is the subreaper of its tree, so wait(2) reports each end to it, and also stops.
Nothing but Ending ends the command or kills the tree.
"""

from __future__ import annotations

import os
import time

from sigwrap.bare import TYPE_CHECKING
from sigwrap.events import Payload
from sigwrap.kernel import process as linux_process
from sigwrap.kernel import ptrace
from sigwrap.kernel.ptrace import WALL
from sigwrap.session.run_end import LimitReached, RunEnd

if TYPE_CHECKING:
    from sigwrap.session.session import Session

_ENDS_AND_STOPS = os.WNOHANG | os.WUNTRACED | os.WCONTINUED | WALL
_CHILDREN_A_TURN = 64
_EXEC_STOP_COMES_WITHIN_NS = 300_000
_SWEEP_S = 0.5


class Ending:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._command_pid = session.command_pid
        self._loop = session.loop
        self._waits = 0
        self._descendants = linux_process.Sweep(self.reaped)
        self.run = RunEnd(self, grace_s=session.settings.grace_s)
        self._loop.watch(session.child_signals.fd, self._on_signal)

    def await_exec_stop(self) -> None:
        """Wait a moment for an exec stop. It usually comes sooner than the supervisor could sleep
        and wake up, and sched_yield lets other processes run meanwhile."""
        signals = self._session.child_signals
        until_ns = time.perf_counter_ns() + _EXEC_STOP_COMES_WITHIN_NS
        while time.perf_counter_ns() < until_ns:
            os.sched_yield()
            if signals.read():
                self.take()
                return

    def _on_signal(self, _happened: int) -> None:
        self._session.child_signals.read()
        self.take()

    def take(self) -> None:
        for _ in range(_CHILDREN_A_TURN):
            try:
                pid, wait_status = os.waitpid(-1, _ENDS_AND_STOPS)
            except ChildProcessError:
                # Orphans become children of the supervisor, so the tree is empty.
                self._loop.turn(0)  # handle the last ends, which are events already
                self.run.no_process_is_left()
                return
            if pid == 0:
                return
            self.on_status(pid, wait_status)
        # Fast ends of children must not keep other requests waiting.
        self._loop.call_in(0, self.take)

    def on_status(self, pid: int, wait_status: int) -> None:
        mediation = self._session.mediation
        if not (os.WIFSTOPPED(wait_status) or os.WIFCONTINUED(wait_status)):
            if mediation is not None:
                mediation.on_end(pid)
            self.reaped(pid, wait_status)
            return
        if mediation is not None and mediation.on_stop(pid, wait_status):
            return
        if os.WIFSTOPPED(wait_status) and ptrace.let_go_unasked(pid, os.WSTOPSIG(wait_status)):
            return
        if pid == self._command_pid:
            self._session.job_control.mirror(wait_status)
            if os.WIFCONTINUED(wait_status):
                self._session.freezing.freeze_continued()

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
            self.run.command_ended(None, os.WTERMSIG(wait_status))
        else:
            self.run.command_ended(os.WEXITSTATUS(wait_status), None)
        if reached is not None:
            self.run.limit_reached(reached)

    # What RunEnd decides

    def record(self, event: str, payload: Payload) -> None:
        self._session.recorder.record(event, self._command_pid, payload)

    def record_with_count(self, event: str, payload: Payload) -> None:
        self.record(event, {**payload, "processes": len(self._descendants.alive())})

    def signal_budget(self, reached: LimitReached) -> None:
        self._session.agent_signals.limit_reached(reached)

    def stop_asking(self, why: str) -> None:
        """Deny open approval requests. A waiting caller may block the signal that should end it."""
        self._session.approvals.stop_asking(why)

    def ask_again(self) -> None:
        self._session.approvals.ask_again()

    def grant_nothing(self) -> None:
        """Deny every request from now on."""
        if self._session.mediation is not None:
            self._session.mediation.performer.grant_nothing()

    def let_run(self) -> None:
        """Thaw a frozen tree and release held execs: they could not end otherwise."""
        self._session.freezing.let_run()

    def freeze_again(self) -> None:
        """Freeze the tree again that `let_run` thawed: the run goes on after all."""
        self._session.agent_signals.freeze_again()

    def terminate_command(self) -> None:
        linux_process.terminate(self._command_pid)

    def terminate_descendants(self) -> None:
        for pid in self._descendants.alive():
            linux_process.terminate(pid)

    def wait(self, seconds: float) -> None:
        """Wait before `grace_over`. Replaces an earlier wait."""
        self._waits += 1
        this_one = self._waits

        def over() -> None:
            if this_one == self._waits:
                self.run.grace_over()

        self._loop.call_in(seconds, over)

    def kill_tree(self) -> None:
        """Let no process fork, and kill in short turns, so that the loop goes on meanwhile."""
        if self._session.mediation is not None:
            self._session.mediation.forks.stop()
        if not self._descendants.run(timeout_s=_SWEEP_S):
            self._loop.call_in(0, self.kill_tree)
        elif self._descendants.unkillable:  # the front process also tries, and names them
            self.run.no_process_is_left()
