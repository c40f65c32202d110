"""An upper bound on the number of processes, to avoid most counts."""

from __future__ import annotations

_REST = 10  # a count that took 5 ms and found no room is not repeated for 50 ms


class Headcount:
    """Between two counts the bound only rises, by what was added. Ended processes are noticed only
    at the next count, when there seems to be no room left."""

    __slots__ = ("_rests_until_s", "at_most")

    def __init__(self, already: int = 0) -> None:
        self.at_most = already
        self._rests_until_s = 0.0

    def has_room(self, maximum: int) -> bool:
        return self.at_most < maximum

    def is_worth_a_count(self, now_s: float) -> bool:
        return now_s >= self._rests_until_s

    def counted(self, number: int, maximum: int, *, started_s: float, ended_s: float) -> None:
        self.at_most = number
        if number >= maximum:
            self._rests_until_s = ended_s + _REST * (ended_s - started_s)

    def add(self) -> None:
        self.at_most += 1
