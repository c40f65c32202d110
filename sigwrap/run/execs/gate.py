"""Pause all execs of a session.

While the gate is closed, no exec starts. Requests wait, and go on in their order when it opens.
Execs that have started go on, and the gate reports when the last of them is over.
"""

from __future__ import annotations

from collections.abc import Callable

from sigwrap.bare.collections import deque


class Gate:
    def __init__(self) -> None:
        self.is_closed = False
        self.on_idle: Callable[[], None] = lambda: None
        self._held: deque[Callable[[], None]] = deque()
        self._in_flight: set[object] = set()

    def hold(self, call: Callable[[], None]) -> None:
        """Make `call` when the gate opens. By then the caller may have ended."""
        self._held.append(call)

    @property
    def held(self) -> int:
        return len(self._held)

    def close(self) -> None:
        self.is_closed = True

    def open(self) -> None:
        self.is_closed = False
        # A call can close the gate again.
        while self._held and not self.is_closed:
            self._held.popleft()()

    # Execs that have started

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    def passed(self, exec_: object) -> None:
        self._in_flight.add(exec_)

    def is_over(self, exec_: object) -> None:
        if exec_ in self._in_flight:
            self._in_flight.remove(exec_)
            if not self._in_flight:
                self.on_idle()
