from __future__ import annotations

import _heapq as heapq
import itertools
import select
import time
from collections.abc import Callable

from sigwrap.linux.waits import seconds_until

_MAX_EVENTS = 4096

Handler = Callable[[int], None]


class Loop:
    """Descriptors and deadlines of one thread. A handler gets the epoll event mask.

    Handlers of a turn run in the order in which their descriptors became ready, but for the one
    that was declared last: by then, every end that was known when its request came is dealt with.
    """

    def __init__(self) -> None:
        self.poll = select.epoll()
        self._handlers: dict[int, Handler] = {}
        self.ends = select.epoll()  # processes' pidfds, which may be asked for by themselves
        self._end_handlers: dict[int, Handler] = {}
        self.watch(self.ends.fileno(), self._take_ends)
        self._last_fd = -1
        self._deadlines: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def watch(
        self, fd: int, handler: Handler, events: int = select.EPOLLIN, *, last: bool = False
    ) -> None:
        """OSError where a user's watches are used up: nothing is watched then."""
        self.poll.register(fd, events)
        self._handlers[fd] = handler
        if last:
            self._last_fd = fd

    def change(self, fd: int, events: int) -> None:
        """Of what is watched: that needs no other watch."""
        self.poll.modify(fd, events)

    def unwatch(self, fd: int) -> None:
        """Before `fd` is closed: its number may be another descriptor's in the same turn."""
        if self._handlers.pop(fd, None) is not None:
            self.poll.unregister(fd)
        if fd == self._last_fd:
            self._last_fd = -1

    def watch_end(self, pidfd: int, handler: Handler) -> None:
        """OSError like watch."""
        self.ends.register(pidfd, select.EPOLLIN | select.EPOLLET)
        self._end_handlers[pidfd] = handler

    def watches_end(self, pidfd: int, handler: Handler) -> None:
        """Who is in `ends` already."""
        self._end_handlers[pidfd] = handler

    def unwatch_end(self, pidfd: int) -> None:
        """Before it is closed."""
        if self._end_handlers.pop(pidfd, None) is not None:
            self.ends.unregister(pidfd)

    def on_end(self, pidfd: int) -> None:
        if pidfd in self._end_handlers:
            self._end_handlers[pidfd](select.EPOLLIN)

    def _take_ends(self, _happened: int) -> None:
        while ended := self.ends.poll(0, _MAX_EVENTS):
            for pidfd, _ in ended:
                self.on_end(pidfd)

    @property
    def next_deadline_s(self) -> float | None:
        return self._deadlines[0][0] if self._deadlines else None

    def call_at(self, deadline_s: float, call: Callable[[], None]) -> None:
        """`deadline_s` on the monotonic clock."""
        heapq.heappush(self._deadlines, (deadline_s, next(self._order), call))

    def turn(self, idle_s: float | None) -> bool:
        """False where nothing happened for `idle_s`."""
        events = self.poll.poll(self._timeout_s(idle_s), _MAX_EVENTS)
        last = 0
        for fd, happened in events:
            if fd == self._last_fd:
                last = happened
            elif fd in self._handlers:
                self._handlers[fd](happened)
        if last and self._last_fd >= 0:
            self._handlers[self._last_fd](last)
        if self._deadlines:
            self._call_what_is_due()
        return bool(events)

    def _timeout_s(self, idle_s: float | None) -> float | None:
        if not self._deadlines:
            return idle_s
        wait_s = seconds_until(self._deadlines[0][0])
        return wait_s if idle_s is None else min(idle_s, wait_s)

    def _call_what_is_due(self) -> None:
        now = time.monotonic()
        while self._deadlines and self._deadlines[0][0] <= now:
            heapq.heappop(self._deadlines)[2]()
