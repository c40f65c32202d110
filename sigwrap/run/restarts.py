"""A call that a signal has broken off before the supervisor got it is made again.

Until its notification has been received a caller waits interruptibly: a handler without SA_RESTART
that runs then makes the call fail with EINTR, which no program expects of kill. What comes of that
is decided as the handler is set up, and a tracer is asked before. So whoever is likely to get a
signal in that moment is traced for as long: a process that signals its own children, and handles
their ends. It runs on meanwhile, stops only at a signal, and is let go a while after its last one,
or as it ends: its parent must be told of that as ever.

Some waits fail by any stop, and would begin anew with their whole timeout (epoll_wait). Nobody can
tell how long such a one has lasted. So whoever is seen in one is let go at once: it waits longer by
no more than the time between two looks.

Only one that has a single thread: nobody else can exec in its process meanwhile, and the signal
comes to nobody else.

A tracer whose tracees would run on after an exec (strace tries whether it can have such) is made to
ask for a stop there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from sigwrap.bare import signal
from sigwrap.errors import KernelError
from sigwrap.linux import procfs, ptrace
from sigwrap.linux.blind_tracer import BlindTracer
from sigwrap.linux.ptrace import Gone
from sigwrap.linux.seccomp import Notification
from sigwrap.run.loop import Loop

_TRACED_FOR_S = 1.0  # after its last signal to a child
_LOOKS_EVERY_S = 0.02
_LEFT_TO_OTHERS_S = 0.1
_EXEC_TAKES_S = 0.005


class Restarts:
    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._traced_until_s: dict[int, float] = {}  # whom this traces
        self._blind_tracers: dict[int, BlindTracer] = {}
        self._waiting: dict[int, list[Callable[[], None]]] = {}  # until it is let go
        self._left_to_others: set[int] = set()
        self._looks = False

    def expects_ends(self, pid: int) -> None:
        """Of its children. The process waits for the answer to what ends or makes them."""
        if pid not in self._traced_until_s:
            if pid in self._left_to_others:
                return
            if not procfs.is_alone_and_catches(pid, signal.SIGCHLD) or not _seize(pid):
                return
            self._look_later()
        self._traced_until_s[pid] = time.monotonic() + _TRACED_FOR_S

    def with_stops_after_execs(self, notification: Notification) -> bool:
        """The call seizes somebody, or sets options, without PTRACE_O_TRACEEXEC. Whether it comes
        again with that: then this one is to be answered with ERESTARTNOINTR. What comes is judged
        like any other."""
        pid = notification.tid
        found = procfs.stat(pid)
        if found is None or found.threads != 1:
            return False
        if pid not in self._traced_until_s and not _seize(pid):
            return False
        self._traced_until_s[pid] = 0.0
        self._blind_tracers[pid] = BlindTracer(notification)
        _interrupt(pid)
        return True

    def hand_over(self, pid: int) -> bool:
        """It is at an exec. Whether it was traced for this: from now on it is for that."""
        is_traced = pid in self._traced_until_s
        self._forget(pid, others_wait_s=_EXEC_TAKES_S)
        return is_traced

    def let_go_soon(self, pid: int, then: Callable[[], None] | None = None) -> bool:
        """Whether it was traced for this. One that waits for an answer stops on its way out."""
        if pid not in self._traced_until_s:
            return False
        self._traced_until_s[pid] = 0.0
        if then is not None:
            self._waiting.setdefault(pid, []).append(then)
        _interrupt(pid)
        return True

    def on_stop(self, pid: int, wait_status: int) -> bool:
        """Whether it is one of these."""
        if pid not in self._traced_until_s or os.WIFCONTINUED(wait_status):
            return False
        try:
            goes_on_traced = self._send_on(pid, wait_status)
        except KernelError:
            goes_on_traced = False  # it was killed out of its stop
        if not goes_on_traced:
            self._forget(pid)
        return True

    def _send_on(self, pid: int, wait_status: int) -> bool:
        stop = os.WSTOPSIG(wait_status)
        number = 0 if wait_status >> 16 or stop == ptrace.SYSCALL_STOP else stop
        if pid in self._blind_tracers:
            if not self._blind_tracers[pid].on_stop(wait_status, number):
                return True
            del self._blind_tracers[pid]
        ptrace.make_again(pid, wait_status)
        if number and time.monotonic() < self._traced_until_s[pid]:
            ptrace.resume(pid, number)
            return True
        ptrace.detach(pid, number)
        return False

    def on_end(self, pid: int) -> None:
        self._forget(pid)

    def _forget(self, pid: int, *, others_wait_s: float = 0.0) -> None:
        self._traced_until_s.pop(pid, None)
        self._blind_tracers.pop(pid, None)
        waiting = self._waiting.pop(pid, None)
        if waiting is None:
            return
        now_s = time.monotonic()
        for then in waiting:
            self._loop.call_at(now_s + others_wait_s, then)
        self._left_to_others.add(pid)
        self._loop.call_at(now_s + _LEFT_TO_OTHERS_S, lambda: self._left_to_others.discard(pid))

    def _look_later(self) -> None:
        if not self._looks:
            self._looks = True
            self._loop.call_at(time.monotonic() + _LOOKS_EVERY_S, self._look)

    def _look(self) -> None:
        now_s = time.monotonic()
        for pid, until_s in self._traced_until_s.items():
            if pid not in self._blind_tracers and (
                now_s >= until_s or ptrace.would_begin_anew(pid)
            ):
                _interrupt(pid)
        self._looks = False
        if self._traced_until_s:
            self._look_later()


def _interrupt(pid: int) -> None:
    try:
        ptrace.interrupt(pid)
    except Gone:
        pass  # its end will be reported


def _seize(pid: int) -> bool:
    """False where it is traced, may not be looked into, or was killed."""
    try:
        ptrace.seize(pid, ptrace.TO_ITS_EXEC_OR_END)
    except KernelError:
        return False
    return True
