"""A call that a signal has broken off before the supervisor got it is made again.

Until its notification has been received a caller waits interruptibly: a handler without SA_RESTART
that runs then makes the call fail with EINTR, which no program expects of kill. What comes of that
is decided as the handler is set up, and a tracer is asked before. So whoever is likely to get a
signal in that moment is traced for as long: a process that signals its own children, and handles
their ends. It runs on meanwhile, stops only at a signal, and is let go when its children have ended
or after a while.

Only one that has a single thread: nobody else can exec in its process meanwhile, and the signal
comes to nobody else.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence

from sigwrap.errors import KernelError
from sigwrap.linux import broken_off, procfs, ptrace
from sigwrap.linux.ptrace import Gone
from sigwrap.mediate.effects import SignalTarget
from sigwrap.run.loop import Loop

_TRACED_AT_MOST_S = 1.0  # after its last signal to a child


class _Parent:
    __slots__ = ("children", "makes_children", "until_s")

    def __init__(self) -> None:
        self.children: set[SignalTarget] = set()  # that it has signalled
        self.makes_children = False
        self.until_s = 0.0

    def awaits_more(self) -> bool:
        if time.monotonic() >= self.until_s:
            return False
        if self.makes_children:
            return True
        self.children = {each for each in self.children if not _its_parent_was_told(each)}
        return bool(self.children)


class Restarts:
    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._by_pid: dict[int, _Parent] = {}  # whom this traces

    def signals_children(self, pid: int, children: Sequence[SignalTarget]) -> None:
        """The process waits for the answer to that."""
        parent = self._traced(pid)
        if parent is not None:
            parent.children.update(children)

    def makes_child(self, pid: int) -> None:
        """The same."""
        parent = self._traced(pid)
        if parent is not None:
            parent.makes_children = True

    def _traced(self, pid: int) -> _Parent | None:
        parent = self._by_pid.get(pid)
        if parent is None:
            if not procfs.is_alone_and_catches(pid, signal.SIGCHLD):
                return None
            try:
                ptrace.seize(pid)
            except KernelError:  # it is traced, may not be looked into, or was killed
                return None
            parent = self._by_pid[pid] = _Parent()
            self._look_later(pid, parent)
        parent.until_s = time.monotonic() + _TRACED_AT_MOST_S
        return parent

    def hand_over(self, pid: int) -> bool:
        """It is at an exec. Whether it was traced for this: from now on it is for that."""
        return self._by_pid.pop(pid, None) is not None

    def let_go_soon(self, pid: int) -> bool:
        """Whether it was traced for this."""
        if pid not in self._by_pid:
            return False
        self._interrupt(pid)
        return True

    def on_stop(self, pid: int, wait_status: int) -> bool:
        """Whether it is one of these."""
        parent = self._by_pid.get(pid)
        if parent is None or os.WIFCONTINUED(wait_status):
            return False
        number = 0 if wait_status >> 16 else os.WSTOPSIG(wait_status)
        try:
            broken_off.make_again(pid, by_us=not number)
            if number == signal.SIGCHLD and parent.awaits_more():
                ptrace.resume(pid, number)
                return True
            ptrace.detach(pid, number)
        except KernelError:
            pass  # it was killed out of its stop
        del self._by_pid[pid]
        return True

    def on_end(self, pid: int) -> None:
        self._by_pid.pop(pid, None)

    def _look_later(self, pid: int, parent: _Parent) -> None:
        def look() -> None:
            if self._by_pid.get(pid) is not parent:
                return
            if time.monotonic() >= parent.until_s and not broken_off.would_wait_anew(pid):
                self._interrupt(pid)
            self._look_later(pid, parent)

        self._loop.call_at(time.monotonic() + _TRACED_AT_MOST_S, look)

    def _interrupt(self, pid: int) -> None:
        try:
            ptrace.interrupt(pid)
        except Gone:
            pass  # its end will be reported


def _its_parent_was_told(child: SignalTarget) -> bool:
    """That it has ended. Whoever traces it gets to know that first, and often that is sigwrap."""
    found = procfs.stat(child.pid)
    if found is None or found.start_time != child.start_time:
        return True
    return found.has_ended and not any(procfs.numbers(child.pid, "TracerPid"))
