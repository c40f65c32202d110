"""What a report is made of, from one pass over the log. Of a long one it is read and verified in a
process beside this one, which folds what that tells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from sigwrap.cli.beside import Beside, Tell, has_room
from sigwrap.events import Event
from sigwrap.outcomes import ALLOWED, outcome
from sigwrap.report.check.verify import Outcome, Verification, verify_session
from sigwrap.report.folds.ending import Ending
from sigwrap.report.folds.selection import Selection
from sigwrap.report.folds.summary import Summary, SummaryFold
from sigwrap.store.bounds import WHOLE_TYPES
from sigwrap.store.reader import Session

LONG_BYTES = 32 << 20
_EVENTS_AT_ONCE = 64
_EVENT: Callable[[tuple[Any, ...]], Event] = partial(tuple.__new__, Event)
# Half of a log is execs that simply went through. What no report says of them takes as long to pass
# on as all the rest.
_NOT_SAID = (
    "cwd",
    "depth",
    "syscall",
    "truncated",
    "traced",
    "verified",
    "evaluation_us",
    "programs",
    "siblings",
    "processes",
)

Take = Callable[[Event, bool], None]


def read(
    session: Session,
    key: bytes | None,
    ending: Ending,
    selection: Selection | None,
    take: Take,
) -> tuple[Summary, Verification]:
    """`take` sees each event that can be read, and whether it is of what was selected."""
    fold = SummaryFold(selection)

    def each(event: Event) -> None:
        take(event, fold.add(event))

    if session.size < LONG_BYTES or ending is Ending.RUNNING or not has_room():
        verification = verify_session(session, key, and_also=each)
    else:
        verification = _verified_beside(session, key, each)
    return fold.result(ending), verification


def _verified_beside(
    session: Session, key: bytes | None, and_also: Callable[[Event], None]
) -> Verification:
    events = 0
    try:
        beside = Beside(lambda tell: _read_and_verify(session, key, tell))
    except OSError:  # no process, or no descriptor, is to be had
        return verify_session(session, key, and_also=and_also)
    try:
        for told in beside.told():
            if isinstance(told, dict):
                return _verification(told)
            for event in map(_EVENT, told):
                and_also(event)
            events += len(told)
    finally:
        beside.stop()
    found = verify_session(session, key, and_also=_after(events, and_also))
    return replace(found, events=max(found.events, events))  # the log may be gone meanwhile


def _read_and_verify(session: Session, key: bytes | None, tell: Tell) -> None:
    waiting: list[Event] = []

    def pass_on(event: Event) -> None:
        waiting.append(event)
        if len(waiting) == _EVENTS_AT_ONCE or event.type in WHOLE_TYPES:  # that may be long
            tell(list(map(_told, waiting)))
            waiting.clear()

    verification = verify_session(session, key, and_also=pass_on)
    tell(list(map(_told, waiting)))
    tell({**asdict(verification), "outcome": verification.outcome.value})


def _told(event: Event) -> tuple[Any, ...]:
    if event.type == "exec_allowed" and outcome(event) == ALLOWED:
        pop = event.payload.pop
        for each in _NOT_SAID:
            pop(each, None)
    return tuple(event)


def _verification(found: dict[str, Any]) -> Verification:
    return Verification(**{**found, "outcome": Outcome(found["outcome"])})


def _after(events: int, and_also: Callable[[Event], None]) -> Callable[[Event], None]:
    """What the process beside has passed on before it failed isn't passed on again."""
    passed_on = iter(range(events))
    return lambda event: and_also(event) if next(passed_on, None) is None else None
