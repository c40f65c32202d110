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
"""

from __future__ import annotations

import os
import time

from sigwrap.bare import signal
from sigwrap.errors import KernelError
from sigwrap.hints import TYPE_CHECKING
from sigwrap.linux import procfs, ptrace
from sigwrap.linux.ptrace import Gone

if TYPE_CHECKING:
    from sigwrap.run.perform import Performer, Scope
    from sigwrap.run.session import Session

_TRACED_FOR_S = 1.0  # after its last signal to a child
_LOOKS_EVERY_S = 0.02
_LEFT_TO_OTHERS_S = 0.1
_EXEC_TAKES_S = 0.005


class Restarts:
    def __init__(self, session: Session, performer: Performer) -> None:
        self._loop = session.loop
        self._performer = performer
        self._traced_until_s: dict[int, float] = {}  # whom this traces
        # Requests that wait until it is let go, and their replies.
        self._waiting: dict[int, list[tuple[Scope, object]]] = {}
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

    def hand_over(self, pid: int) -> bool:
        """It is at an exec. Whether it was traced for this: from now on it is for that."""
        is_traced = pid in self._traced_until_s
        self._forget(pid, others_wait_s=_EXEC_TAKES_S)
        return is_traced

    def let_go_soon(self, pid: int, scope: Scope, reply: object) -> bool:
        """Return whether it was traced for this: then the request gets its reply once it isn't.

        A process that waits for an answer stops on its way out.
        """
        if pid not in self._traced_until_s:
            return False
        self._traced_until_s[pid] = 0.0
        self._waiting.setdefault(pid, []).append((scope, reply))
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
        waiting = self._waiting.pop(pid, None)
        if waiting is None:
            return
        now_s = time.monotonic()
        for scope, reply in waiting:
            self._performer.wake_at(now_s + others_wait_s, scope, reply)
        self._left_to_others.add(pid)
        self._loop.call_at(now_s + _LEFT_TO_OTHERS_S, lambda: self._left_to_others.discard(pid))

    def _look_later(self) -> None:
        if not self._looks:
            self._looks = True
            self._loop.call_at(time.monotonic() + _LOOKS_EVERY_S, self._look)

    def _look(self) -> None:
        now_s = time.monotonic()
        for pid, until_s in self._traced_until_s.items():
            if now_s >= until_s or ptrace.would_begin_anew(pid):
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
