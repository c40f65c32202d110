from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from sigwrap.errors import StoreError
from sigwrap.events import Payload
from sigwrap.store.writer import SessionLog


class Recorder:
    """The log while it is written: an event is in it, or what it stands for must not happen."""

    def __init__(self, log: SessionLog, tell: Callable[[str], None]) -> None:
        self.log = log
        self._tell = tell
        self._failing = False
        self.counts: Counter[str] = Counter()
        self.unrecorded = 0

    def record(self, type_name: str, pid: int, payload: Payload) -> bool:
        try:
            self.log.append(type_name, pid, payload, time.time_ns())
        except StoreError as failure:
            self.unrecorded += 1
            if not self._failing:
                self._failing = True
                self._tell(f"{failure}; until it can be written, every exec and signal is denied")
            return False
        self._failing = False
        self.counts[type_name] += 1
        return True
