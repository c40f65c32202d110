"""Find how a log ends: at its session's end, before it, or not yet."""

from __future__ import annotations

from enum import Enum

from sigwrap.log.reader import Session

WHAT_ENDED_IT = "sigwrap was killed or could not write the log"


class Ending(Enum):
    RUNNING = "running"
    ENDED = "ended"
    NOT_CLEAN = "did not end cleanly"
    MOMENT = "at a moment"
    HOOKS = "no end: an agent's hooks"


def ending_of(session: Session) -> Ending:
    """Return how the log ends, unless its last event says ENDED.

    Call it before reading the log: a session that ends meanwhile must not look like a crash.
    """
    if session.is_of_hooks:
        return Ending.HOOKS
    if session.running:
        return Ending.RUNNING
    is_all_of_it = session.has_journal or session.lies_among_sessions
    return Ending.NOT_CLEAN if is_all_of_it else Ending.MOMENT
