"""Some thousand events for a page: first those that need attention, and of the rest every second,
fourth, eighth …, however many there are."""

from __future__ import annotations

from sigwrap.events import DECISION_TYPES, Event, Payload, text, texts, times
from sigwrap.outcomes import ALLOWED, outcome
from sigwrap.report.folds.incidents import INCIDENT_TYPES
from sigwrap.report.folds.selection import AskedAbout
from sigwrap.report.forms.detail import detail
from sigwrap.report.forms.findings import what

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
        self._important: list[Event] = []
        self._sample: list[Event] = []
        self._flags: dict[int, int] = {}  # by seq, if there are any
        self._asked_about = AskedAbout()
        self._step = 1
        self._plain = 0

    def add(self, event: Event) -> None:
        became = outcome(event)
        about = self._asked_about
        if about.answered or (became != ALLOWED and event.type != "process_exited"):
            flags = ANOTHER_TRY if event.payload.get("retry") is True else 0
            if about.is_it(event, became):
                flags |= ASKED_ABOUT
            if flags:
                self._flags[event.seq] = flags
        if len(self._important) < IMPORTANT_KEPT and _is_important(event, became):
            self._important.append(event)
            return
        if self._plain % self._step == 0:
            self._sample.append(event)
            if len(self._sample) > SAMPLE_KEPT:
                self._sample = self._sample[::2]
                self._step *= 2
                self._forget_flags()
        elif self._flags:
            self._flags.pop(event.seq, None)
        self._plain += 1

    @property
    def kept(self) -> int:
        return len(self._important) + len(self._sample)

    def rows(self) -> list[Row]:
        events = sorted([*self._important, *self._sample], key=lambda event: event.seq)
        get = self._flags.get
        return [_row(event, self._started_ns, get(event.seq, 0)) for event in events]

    def _forget_flags(self) -> None:
        kept = {event.seq for events in (self._important, self._sample) for event in events}
        self._flags = {seq: flags for seq, flags in self._flags.items() if seq in kept}


def _is_important(event: Event, became: str) -> bool:
    name = event.type
    if became:
        return became != ALLOWED
    if name == "process_exited":
        return bool(event.payload.get("signal_name"))
    return name in INCIDENT_TYPES or name.startswith(_MARKS)


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
