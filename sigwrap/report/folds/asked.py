"""What somebody was asked about, whatever came of it: the questions, the answers, and the execs and
signals that follow from them."""

from __future__ import annotations

from sigwrap.events import Event
from sigwrap.report.folds.decisions import APPROVED, outcome

ASKED = "asked"
_ANSWERS = ("approval_granted", "approval_denied", "approval_expired")
_ANSWERED_LIMIT = 1_000


class AskedAbout:
    """Has to see every event, in order."""

    def __init__(self) -> None:
        self._answered: dict[int, None] = {}  # whose question has its answer

    def is_it(self, event: Event) -> bool:
        name, answered = event.type, self._answered
        if name == "approval_requested":
            return True
        if name in _ANSWERS:
            answered[event.pid] = None
            if len(answered) > _ANSWERED_LIMIT:
                del answered[next(iter(answered))]
            return True
        became = outcome(event)
        if answered and event.pid in answered and (became or name == "process_exited"):
            del answered[event.pid]
            return bool(became)
        return became == APPROVED
