"""Whether somebody would see a question: a person who is asked where nobody looks keeps the caller
waiting for nothing, and an agent beyond its own patience.
"""

from __future__ import annotations

from collections.abc import Callable


class Attendance:
    def __init__(self, *, is_watched: Callable[[], bool], is_told: bool, look_lasts_s: float):
        """`is_watched`: a place to answer at is in use. `is_told`: somebody is notified of each
        question. `look_lasts_s`: so long who has looked at what waits may come again."""
        self._is_watched = is_watched
        self._is_told = is_told
        self._look_lasts_s = look_lasts_s
        self._looked_until_s = 0.0
        self._has_answered = False

    @property
    def is_at_a_place(self) -> bool:
        """Somebody who is asked there now sees it, whether the session has a terminal or not."""
        return self._is_told or self._is_watched()

    def is_there(self, now_s: float) -> bool:
        return self._has_answered or now_s < self._looked_until_s or self.is_at_a_place

    def nobody_is_told(self) -> None:
        """What was to tell somebody has failed."""
        self._is_told = False

    def note_answer(self) -> None:
        self._has_answered = True

    def note_look(self, now_s: float) -> None:
        self._looked_until_s = now_s + self._look_lasts_s
