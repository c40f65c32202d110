"""Closed, it lets no exec start: requests wait without an answer, and go on in the order in which
they came. Those that have started already go on, and it knows when the last of them is over."""

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
        """Until it opens. By then nobody may wait for the answer any more: `call` looks."""
        self._held.append(call)

    @property
    def held(self) -> int:
        return len(self._held)

    def close(self) -> None:
        self.is_closed = True

    def open(self) -> None:
        self.is_closed = False
        # One of them may close it again.
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
