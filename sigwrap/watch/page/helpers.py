"""Threads for what may take its time; what comes of it comes back to the loop's thread."""

from __future__ import annotations

import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from sigwrap.run.loop import Loop

_Found = TypeVar("_Found")


class Helpers:
    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._woken, self._wake = socket.socketpair()
        self._woken.setblocking(False)
        self._wake.setblocking(False)
        self._ended: deque[Callable[[], None]] = deque()
        self.busy = 0
        loop.watch(self._woken.fileno(), self._on_end)

    def run(self, work: Callable[[], _Found], then: Callable[[_Found | Exception], None]) -> None:
        """`then`, on the loop's thread, gets what `work` returned or raised. Who calls this sees to
        it that there aren't too many."""

        def whole() -> None:
            try:
                found: _Found | Exception = work()
            except Exception as error:
                found = error
            self._ended.append(lambda: then(found))
            with suppress(OSError):  # full: it is awake already; closed: nobody waits any more
                self._wake.send(b".")

        thread = threading.Thread(target=whole, daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # the system has no room for more
            refused = error
            self.busy += 1
            self._ended.append(lambda: then(refused))
            self._wake.send(b".")
        else:
            self.busy += 1

    def close(self) -> None:
        self._loop.unwatch(self._woken.fileno())
        self._woken.close()
        self._wake.close()

    def _on_end(self, _happened: int) -> None:
        with suppress(BlockingIOError):
            self._woken.recv(1 << 12)
        while self._ended:
            self.busy -= 1
            self._ended.popleft()()
