"""How a log ends: whether anything more can come, and what is missing otherwise."""

from __future__ import annotations

from enum import Enum

from sigwrap.store.reader import Session

WHAT_ENDED_IT = "sigwrap was killed or could not write the log"


class Ending(Enum):
    RUNNING = "running"
    ENDED = "ended"
    NOT_CLEAN = "did not end cleanly"
    MOMENT = "at a moment"
    HOOKS = "no end: an agent's hooks"


def ending_of(session: Session) -> Ending:
    """To be asked before the log is read: a session that ends meanwhile must not look as if it had
    crashed. ENDED is what its last event says."""
    if session.is_of_hooks:
        return Ending.HOOKS
    if session.running:
        return Ending.RUNNING
    is_all_of_it = session.has_journal or session.lies_among_sessions
    return Ending.NOT_CLEAN if is_all_of_it else Ending.MOMENT
