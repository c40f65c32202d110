"""A call that a signal has broken off before the supervisor got it is made again.

Until its notification has been received a caller waits interruptibly: a handler without SA_RESTART
that runs then makes the call fail with EINTR, which no program expects of kill. What comes of that
is decided as the handler is set up, and a tracer is asked before. So whoever is likely to get a
signal in that moment is traced for as long: a process that signals its own children, and handles
their ends. It runs on meanwhile, stops only at a signal, and is let go a while after its last one,
or as it ends: its parent must be told of that as ever.

Only one that has a single thread: nobody else can exec in its process meanwhile, and the signal
comes to nobody else.

A tracer whose tracees would run on after an exec (strace tries whether it can have such) is made to
ask for a stop there.
"""

from __future__ import annotations

import os
import signal
import time

from sigwrap.errors import KernelError
from sigwrap.linux import broken_off, procfs, ptrace
from sigwrap.linux.ptrace import Gone
from sigwrap.linux.seccomp import Notification
from sigwrap.run.loop import Loop

_TRACED_FOR_S = 1.0  # after its last signal to a child


class Restarts:
    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._traced_until_s: dict[int, float] = {}  # whom this traces
        self._to_change: dict[int, int] = {}  # of whom the call, and by which ABI it was made

    def expects_ends(self, pid: int) -> None:
        """Of its children. The process waits for the answer to what ends or makes them."""
        if pid not in self._traced_until_s:
            if not procfs.is_alone_and_catches(pid, signal.SIGCHLD) or not _seize(pid):
                return
            self._look_later(pid)
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
        self._to_change[pid] = notification.arch
        self._interrupt(pid)
        return True

    def hand_over(self, pid: int) -> bool:
        """It is at an exec. Whether it was traced for this: from now on it is for that."""
        return self._traced_until_s.pop(pid, None) is not None

    def let_go_soon(self, pid: int) -> bool:
        """Whether it was traced for this. One that waits for an answer stops on its way out."""
        if pid not in self._traced_until_s:
            return False
        self._traced_until_s[pid] = 0.0
        self._interrupt(pid)
        return True

    def on_stop(self, pid: int, wait_status: int) -> bool:
        """Whether it is one of these."""
        until_s = self._traced_until_s.get(pid)
        if until_s is None or os.WIFCONTINUED(wait_status):
            return False
        number = 0 if wait_status >> 16 else os.WSTOPSIG(wait_status)
        arch = self._to_change.pop(pid, None)
        try:
            if arch is not None:
                broken_off.add_stops_after_execs(pid, arch)
            broken_off.make_again(pid)
            if number and time.monotonic() < until_s:
                ptrace.resume(pid, number)
                return True
            ptrace.detach(pid, number)
        except KernelError:
            pass  # it was killed out of its stop
        del self._traced_until_s[pid]
        return True

    def on_end(self, pid: int) -> None:
        self._traced_until_s.pop(pid, None)
        self._to_change.pop(pid, None)

    def _look_later(self, pid: int) -> None:
        def look() -> None:
            until_s = self._traced_until_s.get(pid)
            if until_s is None:
                return
            if time.monotonic() >= until_s and not broken_off.would_wait_anew(pid):
                self._interrupt(pid)
            self._look_later(pid)

        self._loop.call_at(time.monotonic() + _TRACED_FOR_S, look)

    def _interrupt(self, pid: int) -> None:
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
