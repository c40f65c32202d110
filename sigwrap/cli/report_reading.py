"""What a report is made of, from one pass over the log; over a long one two at a time, each with a
part of the work: whether the log is true and why its processes ended, and all the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

from sigwrap.cli.beside import Beside, has_room
from sigwrap.events import Event
from sigwrap.report.check.verify import Outcome, Verification, readable_events, verify_session
from sigwrap.report.folds.ending import Ending
from sigwrap.report.folds.measures import Stopped
from sigwrap.report.folds.selection import Selection
from sigwrap.report.folds.summary import Summary, SummaryFold
from sigwrap.report.folds.why import Explained, WhyFold
from sigwrap.store.reader import Session

LONG_BYTES = 32 << 20

Take = Callable[[Event, bool], None]


def read(
    session: Session,
    key: bytes | None,
    ending: Ending,
    selection: Selection | None,
    take: Take,
) -> tuple[Summary, Verification]:
    """`take` sees each event that can be read, and whether it is of what was selected."""
    if session.size < LONG_BYTES or ending is Ending.RUNNING or not has_room():
        fold = SummaryFold(selection)
        verification = verify_session(
            session, key, and_also=lambda each: take(each, fold.add(each))
        )
        return fold.result(ending), verification
    beside = Beside(lambda: _trust_and_ends(session, key, ending))
    try:
        fold = SummaryFold(selection, explained_elsewhere=True)
        for event in readable_events(session):
            take(event, fold.add(event))
    except BaseException:
        beside.stop()
        raise
    found = beside.result() or _trust_and_ends(session, key, ending)
    summary = fold.result(ending, _explained(found["explained"]))
    return summary, _of_what_was_read(_verification(found["verification"]), summary)


def _of_what_was_read(verification: Verification, summary: Summary) -> Verification:
    """What was verified has to be what is told, though it was read twice."""
    is_same = verification.head == summary.head
    if verification.outcome is not Outcome.INTACT or is_same:
        return verification
    return replace(verification, outcome=Outcome.BROKEN, problem="it was changed while it was read")


def _trust_and_ends(session: Session, key: bytes | None, ending: Ending) -> dict[str, Any]:
    why = WhyFold()
    verification = verify_session(session, key, and_also=why.add)
    return {
        "verification": {**asdict(verification), "outcome": verification.outcome.value},
        "explained": why.explained(ending),
    }


def _verification(found: dict[str, Any]) -> Verification:
    return Verification(**{**found, "outcome": Outcome(found["outcome"])})


def _explained(found: list[Any]) -> Explained:
    command, stopped, killed = found
    return Explained(
        command,
        None if stopped is None else Stopped(*stopped),
        {int(seq): sentence for seq, sentence in killed.items()},
    )
