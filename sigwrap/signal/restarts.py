"""Repeat a call that a signal interrupts before the supervisor has received it.

A process that signals its children, or forks, gets SIGCHLD when one ends. If it handles that
without SA_RESTART, its next mediated call would fail with EINTR. So sigwrap traces the process for
a moment: at the stop for the signal, it makes the call begin anew.
"""

from __future__ import annotations

import os
import time

from sigwrap.bare import TYPE_CHECKING, signal
from sigwrap.errors import KernelError
from sigwrap.kernel import procfs, ptrace
from sigwrap.kernel.ptrace import Gone

if TYPE_CHECKING:
    from sigwrap.session.session import Session

_TRACED_FOR_S = 1.0  # after its last signal to a child
_LOOKS_EVERY_S = 0.02
_LEFT_TO_OTHERS_S = 0.1
_THREADS, _CAUGHT = 17, 31  # among the figures
_SIGCHLD = 1 << signal.SIGCHLD - 1


class Restarts:
    def __init__(self, session: Session) -> None:
        self._loop = session.loop
        self.traced_until_s: dict[int, float] = {}  # by pid; an exec takes its process out
        self._figures = procfs.LastFigures()
        self._left_to_others: set[int] = set()
        self._looks = False

    def expects_ends(self, pid: int) -> None:
        """Trace a process that is about to signal a child or to fork, and waits for the answer."""
        if pid not in self.traced_until_s:
            if pid in self._left_to_others:
                return
            figures = self._figures.of(pid)
            if figures is None or not int(figures[_CAUGHT]) & _SIGCHLD:  # as in most processes
                return
            if figures[_THREADS] != b"1":
                return
            try:
                ptrace.seize(pid, ptrace.TO_ITS_EXEC_OR_END)
            except KernelError:
                return  # it is traced, unreadable, or was killed
            self._look_later()
        self.traced_until_s[pid] = time.monotonic() + _TRACED_FOR_S

    def let_go(self, pid: int) -> bool:
        """Return whether this class traces the process: if so, release it soon for another tracer.

        A process that waits for an answer stops on its way out.
        """
        if pid not in self.traced_until_s:
            return False
        self.traced_until_s[pid] = 0.0
        self._left_to_others.add(pid)
        self._loop.call_in(_LEFT_TO_OTHERS_S, self._left_to_others.discard, pid)
        _interrupt(pid)
        return True

    def on_stop(self, pid: int, wait_status: int) -> bool:
        """Return whether the stopped process is traced by this class."""
        if pid not in self.traced_until_s or os.WIFCONTINUED(wait_status):
            return False
        try:
            goes_on_traced = self._send_on(pid, wait_status)
        except KernelError:
            goes_on_traced = False  # it was killed at its stop
        if not goes_on_traced:
            del self.traced_until_s[pid]
        return True

    def _send_on(self, pid: int, wait_status: int) -> bool:
        stop = os.WSTOPSIG(wait_status)
        number = 0 if wait_status >> 16 or stop == ptrace.SYSCALL_STOP else stop
        ptrace.make_again(pid, wait_status)
        if number and time.monotonic() < self.traced_until_s[pid]:
            ptrace.resume(pid, number)
            return True
        ptrace.detach(pid, number)
        return False

    def _look_later(self) -> None:
        if not self._looks:
            self._looks = True
            self._loop.call_in(_LOOKS_EVERY_S, self._look)

    def _look(self) -> None:
        now_s = time.monotonic()
        for pid, until_s in self.traced_until_s.items():
            if now_s >= until_s or ptrace.would_begin_anew(pid):
                _interrupt(pid)
        self._looks = False
        if self.traced_until_s:
            self._look_later()


def _interrupt(pid: int) -> None:
    try:
        ptrace.interrupt(pid)
    except Gone:
        pass  # wait reports its end
