"""What to say of a log that rules or decisions are taken from, where somebody has changed it."""

from __future__ import annotations

from collections.abc import Iterable

from sigwrap.cli.output import note
from sigwrap.cli.showing import key
from sigwrap.escape import printable
from sigwrap.report.check.verify import Outcome, verify_session
from sigwrap.report.forms.verification import problem_of
from sigwrap.store.reader import Session


def note_broken_chains(sessions: Iterable[Session]) -> None:
    for session in sessions:
        found = verify_session(session, key())
        if found.outcome is Outcome.BROKEN:
            note(f"{printable(session.id)}: NOT INTACT: {problem_of(found)}")
