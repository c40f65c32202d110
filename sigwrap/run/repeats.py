"""Log an event that may come a thousand times a second: the first, then one with a count of the
others."""

from __future__ import annotations

import time

from sigwrap.bare import TYPE_CHECKING
from sigwrap.events import Payload
from sigwrap.mediate.effects import Logged
from sigwrap.mediate.lineage import Process

if TYPE_CHECKING:
    from sigwrap.run.session import Session

Key = tuple[object, ...]  # its first element is the process, if one did it


class _Repeated:
    __slots__ = ("event", "further", "payload", "pid")

    def __init__(self, event: str, pid: int, payload: Payload) -> None:
        self.event = event
        self.pid = pid
        self.payload = payload
        self.further = 0


class Repeats:
    def __init__(self, session: Session) -> None:
        self._recorder = session.recorder
        self._loop = session.loop
        self._running: dict[Key, _Repeated] = {}
        self._of_process: dict[object, dict[Key, None]] = {}  # first element of a key -> keys

    def record(self, event: str, pid: int, payload: Payload, key: Key, within_s: float) -> Logged:
        running = self._running.get(key)
        if running is not None:
            running.further += 1
            return Logged.COUNTED
        if not self._recorder.record(event, pid, payload):
            return Logged.FAILED
        first = self._running[key] = _Repeated(event, pid, payload)
        self._of_process.setdefault(key[0], {})[key] = None

        def over() -> None:
            if self._running.get(key) is first:  # its process has not ended since
                self._sum_up(key)

        self._loop.call_at(time.monotonic() + within_s, over)
        return Logged.WRITTEN

    def process_ended(self, process: Process) -> None:
        for key in tuple(self._of_process.get(process, ())):
            self._sum_up(key)

    def close(self) -> None:
        for key in tuple(self._running):
            self._sum_up(key)

    def _sum_up(self, key: Key) -> None:
        repeated = self._running.pop(key)
        of_process = self._of_process[key[0]]
        del of_process[key]
        if not of_process:
            del self._of_process[key[0]]
        if repeated.further:
            payload = {**repeated.payload, "count": repeated.further}
            if "evaluation_us" in payload:
                payload["evaluation_us"] = 0
            self._recorder.record(repeated.event, repeated.pid, payload)
