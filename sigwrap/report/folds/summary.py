"""What happened in a session: all folds over its events that a report has, in memory that doesn't
grow with them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sigwrap.events import (
    CONNECTION_TYPES,
    EVENT_TYPES,
    EXEC_TYPES,
    SIGNAL_TYPES,
    Event,
    Payload,
    number,
    text,
    texts,
    times,
)
from sigwrap.outcomes import ALLOWED, APPROVAL_ANSWERS, DENIED, Counts, outcome
from sigwrap.policy.presets import as_meant
from sigwrap.report.folds.attention import Attention, AttentionFold, By
from sigwrap.report.folds.discards import may_discard_changes
from sigwrap.report.folds.ending import Ending
from sigwrap.report.folds.handed import Handed, HandedFold
from sigwrap.report.folds.incidents import INCIDENT_TYPES, Incident, IncidentsFold
from sigwrap.report.folds.selection import Selection
from sigwrap.report.folds.steps import Steps, StepsFold
from sigwrap.report.folds.tally import Tally, Top
from sigwrap.report.folds.tree import Asked, CommandLine, ProcessTree, TreeLine
from sigwrap.report.folds.why import Explained, WhyFold
from sigwrap.report.folds.written import Written, WrittenFold
from sigwrap.tuples import NamedTuple

PROGRAMS_SHOWN = 20
SIGNALS_SHOWN = 50
FAILURES_SHOWN = 50
LISTED_EVENTS = 50
_NAME_CHARACTERS_KEPT = 200
_LONGEST_NS = 1 << 63
_TYPES_KEPT = 200
_OTHERS = "others"
_FIRST = "session_started"
_STREAMS = frozenset({"stdin", "stdout", "stderr"})
_NO_END = "its end is not recorded"

INTERRUPT_TYPES = frozenset(name for name in EVENT_TYPES if name.startswith("interrupt_"))


class SignalEdge(NamedTuple):
    """A tuple, because each signal of a log makes one and hashes it."""

    signal_name: str
    source: str
    target: str
    target_type: str
    outcome: str


class Talk(NamedTuple):
    """A destination, and what became of it. A tuple like the one above."""

    direction: str
    protocol: str
    destination: str
    outcome: str


class Failure(NamedTuple):
    """Of a process that ran something."""

    command: CommandLine
    exit_code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """The first events of a kind, and how many more there are."""

    events: tuple[Event, ...]
    more: int

    @property
    def count(self) -> int:
        return len(self.events) + self.more


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    started: Payload
    started_ns: int
    last_event_ns: int
    events: int
    head: str
    ending: Ending
    ended: Payload
    selection: Selection | None  # what of the session the rest is about; None: all of it
    by_type: dict[str, int]
    counts: Counts
    handed: tuple[Handed, ...]
    handed_more: int  # how often to others than these
    attention: Attention
    discards: Listed  # execs that may have discarded uncommitted changes
    steps: Steps
    incidents: tuple[Incident, ...]
    incidents_more: dict[str, int]  # by kind
    programs: Top[str]
    shadowing: Top[tuple[str, str]]  # by path, and the system's command of that name
    edges: Top[SignalEdge]
    talks: Top[Talk]
    changes: dict[str, int]  # of files, by what was done
    written: tuple[Written, ...]
    waiting: tuple[Event, ...]  # what somebody is asked about and has not answered
    interrupts: Listed
    deaths: Listed
    failures: Top[Failure]
    recordings: Listed
    explained: Explained
    processes: int  # that the lines of the tree would stand for, if it had all of them
    ran_processes: int  # of these, those that have run something
    running_processes: int
    tree: tuple[TreeLine, ...]
    tree_not_shown: int

    @property
    def duration_ns(self) -> int:
        recorded = self.ended.get("duration_ns")
        if isinstance(recorded, int) and 0 <= recorded < _LONGEST_NS:
            return recorded
        return self.last_event_ns - self.started_ns


class SummaryFold:
    def __init__(self, selection: Selection | None = None) -> None:
        self._selection = selection
        self._first: Event | None = None
        self._last: Event | None = None
        self._events = 0
        self._by_type: dict[str, int] = {}
        self._counts = Counts()
        self._handed = HandedFold()
        self._attention = AttentionFold()
        self._discards = _Lister()
        self._steps = StepsFold()
        self._incidents = IncidentsFold()
        self._programs: Tally[str] = Tally()
        self._shadowing: Tally[tuple[str, str]] = Tally()
        self._edges: Tally[SignalEdge] = Tally()
        self._talks: Tally[Talk] = Tally()
        self._written = WrittenFold()
        self._waiting: OrderedDict[str, Event] = OrderedDict()
        self._interrupts = _Lister()
        self._deaths = _Lister()
        self._failures: Tally[Failure] = Tally()
        self._recordings = _Lister()
        self._recorded_so_far: OrderedDict[int, Event] = OrderedDict()  # by pid
        self._why = WhyFold(tells_of_each=False)
        self._tree = ProcessTree()
        self._handlers: dict[str, Callable[[Event, bool], bool | None]] = {
            "process_exited": self._exit,
            "tool_call_judged": self._steps.judged,
            "exec_failed": self._exec_failed,
            "io_recorded": self._recorded,
            "recording_ended": self._recording_ended,
            **dict.fromkeys(EXEC_TYPES, self._exec),
            **dict.fromkeys(SIGNAL_TYPES, self._signal),
            **dict.fromkeys(CONNECTION_TYPES, self._connection),
            "file_audited": self._file,
            "file_refused_likely": self._file_refused,
            "work_handed_outside": _if_selected(self._handed.add),
            **dict.fromkeys(INTERRUPT_TYPES, _if_selected(self._interrupts.add)),
            **dict.fromkeys(INCIDENT_TYPES, _if_selected(self._incidents.add)),
            "approval_requested": self._asked,
            **dict.fromkeys(APPROVAL_ANSWERS, self._answered),
        }

    def add(self, event: Event) -> bool:
        """Whether it is of what was selected, and not one more try of what was told before."""
        if self._first is None:
            self._first = event
            self._steps.started(event.payload)
        self._last = event
        self._events += 1
        self._why.add(event)
        name = event.type
        is_selected = self._selection is None or self._selection.takes(event)
        handle = self._handlers.get(name)
        if is_selected:
            self._counts.add(name, event.payload)
            by_type = self._by_type
            if handle is None and name not in by_type and len(by_type) >= _TYPES_KEPT:
                name = _OTHERS  # a log that sigwrap didn't write may have any
            by_type[name] = by_type.get(name, 0) + 1
        if handle is not None and handle(event, is_selected) is False:
            return False
        return is_selected

    def result(self, ending: Ending) -> Summary:
        """`ending`: RUNNING or NOT_CLEAN is what the log can't say; ENDED is what it says."""
        first, last = self._first, self._last
        ended = last.payload if last is not None and last.type == "session_ended" else {}
        ending = Ending.ENDED if ended else ending
        return Summary(
            started=first.payload if first is not None and first.type == _FIRST else {},
            started_ns=first.time_ns if first is not None else 0,
            last_event_ns=last.time_ns if last is not None else 0,
            events=self._events,
            head=last.hash if last is not None else "",
            ending=ending,
            ended=ended,
            selection=self._selection,
            by_type=dict(self._by_type),
            counts=self._counts,
            handed=self._handed.result(),
            handed_more=self._handed.more,
            attention=self._attention.result(),
            discards=self._discards.result(),
            steps=self._steps.result(is_over=ending in (Ending.ENDED, Ending.NOT_CLEAN)),
            incidents=self._incidents.result(),
            incidents_more=self._incidents.more,
            programs=self._programs.top(PROGRAMS_SHOWN),
            shadowing=self._shadowing.top(PROGRAMS_SHOWN),
            edges=self._edges.top(SIGNALS_SHOWN),
            talks=self._talks.top(SIGNALS_SHOWN),
            changes=dict(self._written.changes),
            written=self._written.result(),
            waiting=tuple(self._waiting.values()),
            interrupts=self._interrupts.result(),
            deaths=self._deaths.result(),
            failures=self._failures.top(FAILURES_SHOWN),
            recordings=self._recordings.result(self._recorded_so_far.values()),
            explained=self._why.explained(ending),
            processes=self._tree.processes,
            ran_processes=self._tree.ran,
            running_processes=self._tree.running,
            tree=self._tree.lines(),
            tree_not_shown=self._tree.not_shown,
        )

    def _asked(self, event: Event, is_selected: bool) -> None:
        if is_selected:
            self._waiting[str(event.payload.get("approval_id"))] = event
            if len(self._waiting) > LISTED_EVENTS:
                self._waiting.popitem(last=False)

    def _answered(self, event: Event, is_selected: bool) -> None:
        self._waiting.pop(str(event.payload.get("approval_id")), None)
        self._attention.answered(event)

    def _exec(self, event: Event, is_selected: bool) -> bool:
        payload = event.payload
        get = payload.get
        became = outcome(event)
        is_refused = became == DENIED
        if payload.get("retry") is True:
            return False
        path, argv = text(get("path")), get("argv")
        ppid, below = number(get("ppid")), number(get("below"))
        if is_selected:
            if became != ALLOWED:
                by = self._by(event.pid, ppid, below, text(get("comm")))
                self._attention.add(event, became, by)
            if not is_refused:
                self._programs.add(path[:_NAME_CHARACTERS_KEPT])
            if shadows := get("shadows"):
                kept = path[:_NAME_CHARACTERS_KEPT], str(shadows)[:_NAME_CHARACTERS_KEPT]
                self._shadowing.add(kept)
        given = texts(argv) or [path]
        words = as_meant(given)
        self._steps.exec(event, words, words is not given, became, is_selected)
        if is_selected and not is_refused and may_discard_changes(words):
            self._discards.add(event)
        asked = Asked(event.seq, event.pid, ppid, below, words, became, is_selected)
        if is_refused:
            self._tree.refused(asked)
        else:
            self._tree.executed(asked)
        return True

    def _recorded(self, event: Event, is_selected: bool) -> None:
        """What it comes to where no end of the recording follows."""
        if not is_selected:
            return
        get = event.payload.get
        known = self._recorded_so_far
        if event.pid not in known:
            so_far = {"stdin": 0, "stdout": 0, "stderr": 0, "reason": _NO_END}
            known[event.pid] = event._replace(type="recording_ended", payload=so_far)
            if len(known) > LISTED_EVENTS:
                known.popitem(last=False)
        stream = text(get("stream"))
        if stream in _STREAMS:
            known[event.pid].payload[stream] = number(get("offset")) + number(get("size"))

    def _recording_ended(self, event: Event, is_selected: bool) -> None:
        self._recorded_so_far.pop(event.pid, None)
        if is_selected:
            self._recordings.add(event)

    def _exec_failed(self, event: Event, is_selected: bool) -> None:
        self._tree.not_started(event.pid)

    def _signal(self, event: Event, is_selected: bool) -> None:
        if not is_selected:
            return
        payload = event.payload
        became = outcome(event)
        count = times(event.payload)
        self._edges.add(_signal_edge(payload, became), count)
        if became == DENIED:
            name, target = text(payload.get("signal_name")), text(payload.get("target_cmd"))
            self._steps.denied(
                number(payload.get("source_pid")) or event.pid, f"{name} to {target}"
            )
        if became != ALLOWED:
            source = number(payload.get("source_pid")) or event.pid
            by = self._by(source, 0, 0, text(payload.get("source_cmd")))
            self._attention.add(event, became, by)

    def _connection(self, event: Event, is_selected: bool) -> None:
        if not is_selected:
            return
        payload = event.payload
        became = outcome(event)
        count = times(payload)
        self._talks.add(_talk(payload, became), count)
        if became == DENIED:
            self._steps.denied(event.pid, f"connection to {text(payload.get('destination'))}")
        if became != ALLOWED:
            by = self._by(event.pid, 0, 0, text(payload.get("comm")))
            self._attention.add(event, became, by)

    def _file(self, event: Event, is_selected: bool) -> None:
        if is_selected:
            self._written.add(event.payload)

    def _file_refused(self, event: Event, is_selected: bool) -> None:
        if is_selected:
            by = self._by(event.pid, 0, 0, text(event.payload.get("comm")))
            self._attention.add(event, outcome(event), by)
            what = f"{text(event.payload.get('operation'))} {text(event.payload.get('path'))}"
            self._steps.denied(event.pid, f"probably refused: {what}")

    def _by(self, pid: int, ppid: int, below: int, comm: str) -> By:
        runs = self._tree.runs(pid, ppid, below)
        return By(pid, comm) if runs is None else By(*runs)

    def _exit(self, event: Event, is_selected: bool) -> None:
        payload = event.payload
        signal_name = text(payload.get("signal_name"))
        code = payload.get("exit_code")
        if code and is_selected and isinstance(code, int):
            runs = self._tree.runs(event.pid, 0, 0)
            if runs is not None:
                self._failures.add(Failure(runs[1], code))
        self._tree.exited(
            event.pid,
            number(payload.get("ppid")),
            code,
            signal_name,
            text(payload.get("comm")) if signal_name else "",
            event.seq,
            is_selected,
        )
        self._attention.ended(event.pid)
        self._steps.exited(event)
        if signal_name and is_selected:
            self._deaths.add(event)


class _Lister:
    def __init__(self) -> None:
        self._events: list[Event] = []
        self._more = 0

    def add(self, event: Event) -> None:
        if len(self._events) < LISTED_EVENTS:
            self._events.append(event)
        else:
            self._more += 1

    def result(self, others: Iterable[Event] = ()) -> Listed:
        return Listed(events=(*self._events, *others), more=self._more)


def _if_selected(add: Callable[[Event], None]) -> Callable[[Event, bool], bool | None]:
    return lambda event, is_selected: add(event) if is_selected else None


def _signal_edge(payload: Payload, became: str) -> SignalEdge:
    get = payload.get
    return SignalEdge(
        text(get("signal_name")),
        text(get("source_cmd"))[:_NAME_CHARACTERS_KEPT],
        text(get("target_cmd"))[:_NAME_CHARACTERS_KEPT],
        text(get("target_type")),
        became,
    )


def _talk(payload: Payload, became: str) -> Talk:
    get = payload.get
    return Talk(
        text(get("direction")),
        text(get("protocol")),
        text(get("destination"))[:_NAME_CHARACTERS_KEPT],
        became,
    )
