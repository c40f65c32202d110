"""sigwrap's own lines on its standard error, which the process tree shares. A process of the tree
can hold the lock of that pipe or file, so a thread writes them. sigwrap waits 5 ms for it, so that
its line mostly comes before what the command says next, and goes on."""

from __future__ import annotations

import _thread
from collections.abc import Callable

from sigwrap.bare.collections import deque

_MOST_WAITING = 1000  # then the oldest are dropped
_WRITTEN_WITHIN_S = 0.005
_FLUSHED_WITHIN_S = 1.0


class OwnLines:
    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._waiting: deque[str] = deque(maxlen=_MOST_WAITING)
        self._lock = _thread.allocate_lock()
        self._writing = _thread.allocate_lock()  # held from a first line to the last that waits

    def tell(self, line: str) -> None:
        with self._lock:
            self._waiting.append(line)
            if not self._writing.acquire(blocking=False):
                return  # the thread sees it
        try:
            _thread.start_new_thread(self._write_all, ())
        except RuntimeError:  # no thread is to be had
            self._write_all()
        self._wait(_WRITTEN_WITHIN_S)

    def flush(self) -> None:
        """What isn't written by then is given up."""
        self._wait(_FLUSHED_WITHIN_S)

    def _wait(self, within_s: float) -> None:
        if self._writing.acquire(timeout=within_s):
            self._writing.release()

    def _write_all(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._writing.release()
                    return
                line = self._waiting.popleft()
            self._write(line)
