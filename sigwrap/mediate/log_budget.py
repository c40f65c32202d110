"""The size limit of a session's log, since the session decides how much is recorded.

Pure: the size goes in, marks come out (run/recorder.py acts on them).
"""

from __future__ import annotations

import sys

from sigwrap.bare import Enum

# The end of the tree and of the log is still recorded beyond the limit, for a while.
_ALWAYS = frozenset({"session_ended", "limit_exceeded", "killswitch_activated"})
_BEYOND = frozenset(
    {
        "process_exited",
        "recording_ended",
        "store_tampered",
        "interrupt_received",
        "interrupt_forwarded",
        "interrupt_escalated",
        "agent_signal",
        "tree_frozen",
        "tree_thawed",
    }
)
_LEAST_BEYOND_BYTES = 1 << 20


class Mark(Enum):
    HALF = "half"
    FULL = "full"


class LogBudget:
    def __init__(self, maximum: int, *, ends_run: bool) -> None:
        """Set the limit in bytes; 0 sets none. A full log ends the run, or denies everything."""
        self.maximum = maximum
        self.ends_run = ends_run
        self.next_mark = (maximum + 1) // 2 or sys.maxsize
        self._marks = [Mark.HALF, Mark.FULL]
        self._beyond = maximum + max(maximum // 16, _LEAST_BEYOND_BYTES)

    def passed(self, size: int) -> Mark | None:
        """Return the mark that this size has passed, once; a full log is not also half full."""
        if not self._marks or size < self.next_mark:
            return None
        self.next_mark = self.maximum
        if size >= self.maximum:
            self._marks.clear()
            return Mark.FULL
        return self._marks.pop(0)

    def admits(self, size: int, event: str) -> bool:
        if size < self.maximum or event in _ALWAYS:
            return True
        return event in _BEYOND and size < self._beyond
