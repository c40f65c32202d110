"""Detects a stuck supervisor: it raises a count, and another process or thread watches it.

Calls that the tree can block run in worker threads; this limits the effect of any other. A machine
that slept, or a stopped job, is no stall: several looks in a row must find the same count.
"""

from __future__ import annotations

BEATS_EVERY_S = 2.0
LOOKED_AT_EVERY_S = 5.0
_SAME_COUNTS = 3


class Heartbeat:
    def __init__(self) -> None:
        self._last = 0
        self._same = 0

    def is_missing(self, count: int) -> bool:
        """Return whether the count has stood still too long; 0 means that no beat is due."""
        if count == 0 or count != self._last:
            self._last = count
            self._same = 0
            return False
        self._same += 1
        return self._same >= _SAME_COUNTS
