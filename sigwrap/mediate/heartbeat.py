"""Whether the supervisor still goes on: a count that it raises, and that somebody else looks at.

What the tree can make it wait for, it does aside; what nobody has thought of has a bound all the
same. A machine that slept, or a job that was stopped, is no stall: several looks in a row must find
what the look before found.
"""

from __future__ import annotations

BEATS_EVERY_S = 2.0
LOOKED_AT_EVERY_S = 5.0
_LOOKS_IN_VAIN = 3


class Heartbeat:
    def __init__(self) -> None:
        self._last = 0
        self._in_vain = 0

    def is_missing(self, count: int) -> bool:
        """`count`: 0 where no beat is due."""
        if count == 0 or count != self._last:
            self._last = count
            self._in_vain = 0
            return False
        self._in_vain += 1
        return self._in_vain >= _LOOKS_IN_VAIN
