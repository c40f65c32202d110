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
    return Ending.MOMENT if session.is_a_copy else Ending.NOT_CLEAN
