"""Warn on standard error about a log that was changed."""

from __future__ import annotations

from collections.abc import Iterable

from sigwrap.cli.output import note
from sigwrap.cli.showing import key
from sigwrap.escape import printable
from sigwrap.report.check.verify import Outcome, Verification, verify_session
from sigwrap.report.forms.verification import problem_of
from sigwrap.store.reader import Session


def note_broken_chains(sessions: Iterable[Session]) -> None:
    for session in sessions:
        note_where_broken(session, verify_session(session, key()))


def note_where_broken(session: Session, found: Verification) -> None:
    """Warn about a broken hash chain; the reading command reports an unreadable log itself."""
    if found.outcome is Outcome.BROKEN and found.events:
        note(f"{printable(session.id)}: NOT INTACT: {problem_of(found)}")
