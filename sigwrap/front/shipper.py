"""The process that ships a session while it runs, as the front process sees it: a child outside the
session, in a process group that no key of the terminal reaches."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from math import inf

from sigwrap.bare import TYPE_CHECKING, signal, socket, suppress
from sigwrap.kernel.libc import seconds_until
from sigwrap.kernel.signals import SignalFd

if TYPE_CHECKING:
    from sigwrap.session.settings import RunSettings

Tell = Callable[[str], None]

READY, FAILED, SHIPPED, LEFT = b"r", b"f", b"s", b"l"  # how its messages begin
_LONGEST = 1 << 12
_SAYS_WHY_WITHIN_S, _SAYS_THAT_IT_WAITS_AFTER_S = 0.5, 1.0
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP)
_DIED = "the process that ships was killed"


class Shipper:
    def __init__(self, settings: RunSettings, pid: int, end: socket.socket) -> None:
        self.pid = pid
        self._timeout_s = settings.ship_timeout_s
        self.is_required = settings.ship_required
        self.fd = end.fileno()
        self.is_over = False
        self.has_shipped = False  # all of it
        self._end = end

    def await_ready(self) -> str:
        """Wait until it can ship. Return why it can't, or an empty text."""
        said = self._end.recv(_LONGEST)
        return "" if said == READY else said[1:].decode() or _DIED

    def ship_rest(self, log_head: str, signals: SignalFd, callers_end: int, tell: Tell) -> str:
        """Tell it that the run is over, and wait. Return why it did not ship the rest.

        `log_head`: empty if the supervisor was killed. A signal ends the wait, and so does
        `callers_end`, a pidfd or -1.
        """
        with suppress(OSError):  # it has ended
            if log_head:
                self._end.send(log_head.encode())
            self._end.shutdown(socket.SHUT_WR)
        now, problem = time.monotonic(), "not all events were shipped"
        says_at = now + _SAYS_THAT_IT_WAITS_AFTER_S if os.isatty(2) else inf
        until = now + self._timeout_s + _SAYS_WHY_WITHIN_S
        with select.epoll() as waiting:
            for fd in (self.fd, signals.fd, callers_end):
                if fd >= 0:
                    waiting.register(fd, select.EPOLLIN)
            while not self.is_over and (now := time.monotonic()) < until:
                if now >= says_at:
                    tell("shipping the rest of the log; Ctrl+C ends this")
                    says_at = inf
                ready = dict(waiting.poll(seconds_until(min(says_at, until))))
                problem = self.problem() or problem
                if callers_end in ready or any(each.number in _ENDING for each in signals.read()):
                    break
        return "" if self.has_shipped else problem

    def problem(self) -> str:
        """Return what it could not do since the last call, or an empty text."""
        found = ""
        while not self.is_over:
            try:
                said = self._end.recv(_LONGEST, socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
            kind = said[:1]
            self.is_over, self.has_shipped = kind != FAILED, kind == SHIPPED
            if not self.has_shipped:
                found = said[1:].decode() or _DIED
        return found
