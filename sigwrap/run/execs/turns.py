"""Let one thread of a process execute at a time. The requests of its other threads wait."""

from __future__ import annotations

from collections.abc import Callable

from sigwrap.bare.collections import deque
from sigwrap.mediate.lineage import Process


class Turns:
    def __init__(self) -> None:
        self._taken: set[int] = set()  # pids
        self._put_off: dict[int, deque[Callable[[], None]]] = {}

    def is_taken(self, process: Process) -> bool:
        return process.pid in self._taken

    def take(self, process: Process) -> None:
        self._taken.add(process.pid)

    def put_off(self, process: Process, call: Callable[[], None]) -> None:
        """Make `call` after the process's current exec."""
        self._put_off.setdefault(process.pid, deque()).append(call)

    def give_back(self, process: Process) -> None:
        pid = process.pid
        self._taken.discard(pid)
        waiting = self._put_off.get(pid)
        while waiting and pid not in self._taken:
            waiting.popleft()()
        if not waiting:
            self._put_off.pop(pid, None)
