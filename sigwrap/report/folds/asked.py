"""What somebody was asked about, whatever came of it: the questions, the answers, and the execs and
signals that follow from them."""

from __future__ import annotations

from sigwrap.events import Event
from sigwrap.outcomes import APPROVAL_ANSWERS, APPROVED

ASKED = "asked"
ANSWERED = "answered"
_ANSWERED_LIMIT = 1_000


class AskedAbout:
    """Has to see every event, in order."""

    def __init__(self) -> None:
        self.answered: dict[int, bool] = {}  # whose question has its answer

    def is_it(self, event: Event, became: str) -> bool:
        """`became`: its outcome."""
        answered = self.answered
        if became:
            is_answered = bool(answered) and answered.pop(event.pid, False)
            return is_answered or became == APPROVED
        name = event.type
        if name == "process_exited":
            if answered:
                answered.pop(event.pid, None)
            return False
        if name in APPROVAL_ANSWERS:
            answered[event.pid] = True
            if len(answered) > _ANSWERED_LIMIT:
                del answered[next(iter(answered))]
            return True
        return name == "approval_requested"
