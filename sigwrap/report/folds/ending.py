"""Find how a log ends: at its session's end, before it, or not yet."""

from __future__ import annotations

import os
from contextlib import suppress
from enum import Enum

from sigwrap.errors import StoreError
from sigwrap.events import HOOK_KIND
from sigwrap.log.folder import SESSIONS_FOLDER, journal_path
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
    with suppress(StoreError):
        first = session.first()
        if first is not None and first.payload.get("kind") == HOOK_KIND:
            return Ending.HOOKS
    if session.running:
        return Ending.RUNNING
    # A copy, such as a checkpoint, is not in a store's folder of sessions, and has no journal.
    folder = os.path.basename(os.path.dirname(os.path.abspath(session.path)))
    is_copy = folder != SESSIONS_FOLDER and not os.path.exists(journal_path(session.path))
    return Ending.MOMENT if is_copy else Ending.NOT_CLEAN
