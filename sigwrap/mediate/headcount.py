from __future__ import annotations

from collections.abc import Callable

_REST = 10  # a count that took 5 ms and found no room is not repeated for 50 ms


class Headcount:
    """How many there are at most. Between two counts the bound only rises, by what was admitted:
    who has ended is noticed when there seems to be no room left, and not before."""

    __slots__ = ("_rests_until_s", "at_most")

    def __init__(self, already: int = 0) -> None:
        self.at_most = already
        self._rests_until_s = 0.0

    def admits(self, maximum: int, count: Callable[[], int], now_s: Callable[[], float]) -> bool:
        """Whether there is room for one more, which is then counted in."""
        if self.at_most >= maximum and not self._recounted(maximum, count, now_s):
            return False
        self.at_most += 1
        return True

    def _recounted(
        self, maximum: int, count: Callable[[], int], now_s: Callable[[], float]
    ) -> bool:
        started_s = now_s()
        if started_s < self._rests_until_s:
            return False
        self.at_most = count()
        ended_s = now_s()
        if self.at_most < maximum:
            return True
        self._rests_until_s = ended_s + _REST * (ended_s - started_s)
        return False
