"""Some thousand events for a page: first those that need attention, and of the rest every second,
fourth, eighth …, however many there are."""

from __future__ import annotations

from sigwrap.events import DECISION_TYPES, Event, Payload, text, texts, times
from sigwrap.outcomes import ALLOWED, outcome
from sigwrap.report.folds.attention import what
from sigwrap.report.folds.incidents import INCIDENT_TYPES
from sigwrap.report.folds.selection import AskedAbout
from sigwrap.report.forms.detail import detail, is_death

Row = tuple[int, int, str, int, str, str, str, str, int]
"""seq, offset_ns, type, pid, outcome, text, rule, command, flags"""

ASKED_ABOUT, ANOTHER_TRY = 1, 2

IMPORTANT_KEPT = 10_000
SAMPLE_KEPT = 10_000

_MARKS = (
    "session_",
    "approval_",
    "interrupt_",
    "tree_",
    "killswitch_",
    "recording_",
    "checkpoint",
    "work_",
)


class EventRows:
    def __init__(self, started_ns: int) -> None:
        """`started_ns`: of the session; its first row here may be a later one."""
        self._started_ns = started_ns
        self._important: list[tuple[Event, int]] = []  # with their flags
        self._sample: list[tuple[Event, int]] = []
        self._asked_about = AskedAbout()
        self._step = 1
        self._plain = 0

    def add(self, event: Event) -> None:
        became = outcome(event)
        flags = ANOTHER_TRY if event.payload.get("retry") is True else 0
        if self._asked_about.is_it(event, became):
            flags |= ASKED_ABOUT
        if len(self._important) < IMPORTANT_KEPT and _is_important(event, became):
            self._important.append((event, flags))
            return
        if self._plain % self._step == 0:
            self._sample.append((event, flags))
            if len(self._sample) > SAMPLE_KEPT:
                self._sample = self._sample[::2]
                self._step *= 2
        self._plain += 1

    def rows(self) -> list[Row]:
        found = sorted([*self._important, *self._sample], key=lambda each: each[0].seq)
        return [_row(event, self._started_ns, flags) for event, flags in found]


def _is_important(event: Event, became: str) -> bool:
    name = event.type
    if became:
        return became != ALLOWED
    return is_death(event) or name in INCIDENT_TYPES or name.startswith(_MARKS)


def _row(event: Event, started_ns: int, flags: int) -> Row:
    payload = event.payload
    is_request = event.type in DECISION_TYPES
    often = f"{times(payload)} times  " if is_request and times(payload) > 1 else ""
    return (
        event.seq,
        event.time_ns - started_ns,
        event.type,
        event.pid,
        outcome(event),
        often + what(event) if is_request else detail(event),
        text(payload.get("rule_name")),
        _command(payload),
        flags,
    )


def _command(payload: Payload) -> str:
    argv = texts(payload.get("argv"))
    name = argv[0] if argv else text(payload.get("source_cmd")) or text(payload.get("comm"))
    return name.rpartition("/")[2]
