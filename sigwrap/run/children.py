"""Handle what wait(2) reports to the supervisor, the subreaper of its tree: tracing stops, job
control stops, and ends."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from sigwrap.bare import TYPE_CHECKING
from sigwrap.linux import ptrace
from sigwrap.linux.ptrace import WALL

if TYPE_CHECKING:
    from sigwrap.run.session import Session

_ENDS_AND_STOPS = os.WNOHANG | os.WUNTRACED | os.WCONTINUED | WALL
_CHILDREN_A_TURN = 64
_EXEC_STOP_COMES_WITHIN_NS = 300_000


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
                self._take()
                return

    def on_waited(self, waited: Sequence[tuple[int, int]]) -> None:
        """Handle results of wait(2) from the extension. A pid of -1: no child is left."""
        if len(waited) >= _CHILDREN_A_TURN:  # there may be more, and their signal was read already
            self._loop.call_at(time.monotonic(), self._take)
        for pid, wait_status in waited:
            if pid < 0:
                self._ending.no_child_is_left()
            else:
                self._on_status(pid, wait_status)

    def _on_signal(self, _happened: int) -> None:
        self._signals.read()
        self._take()

    def _take(self) -> None:
        for _ in range(_CHILDREN_A_TURN):
            try:
                pid, wait_status = os.waitpid(-1, _ENDS_AND_STOPS)
            except ChildProcessError:
                self._ending.no_child_is_left()
                return
            if pid == 0:
                return
            self._on_status(pid, wait_status)
        # Fast ends of children must not keep other requests waiting.
        self._loop.call_at(time.monotonic(), self._take)

    def _on_status(self, pid: int, wait_status: int) -> None:
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
