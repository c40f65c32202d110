"""What happened in a session: a fold over its events, in memory that doesn't grow with them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from sigwrap.events import EVENT_TYPES, EXEC_TYPES, SIGNAL_TYPES, Event, Payload, number
from sigwrap.report.tally import Tally, Top
from sigwrap.report.tree import ProcessTree, TreeLine
from sigwrap.report.why import Stopped, WhyFold
from sigwrap.tuples import NamedTuple

PROGRAMS_SHOWN = 20
SIGNALS_SHOWN = 50
LISTED_EVENTS = 50
_NAME_CHARACTERS_KEPT = 200
_LONGEST_NS = 1 << 63

NOT_PLAIN_TYPES = frozenset(
    {
        "agent_signal",
        "tree_frozen",
        "tree_thawed",
        "exec_denied",
        "exec_redirected",
        "killswitch_activated",
        "killswitch_invented",
        "exec_verification_failed",
        "signal_blocked",
        "signal_redirected",
        "signal_absorbed",
        "signal_approved",
        "approval_granted",
        "approval_denied",
        "approval_expired",
        "control_refused",
        "limit_exceeded",
        "own_files_changed",
        "servers_killed",
        "store_tampered",
    }
)
INTERRUPT_TYPES = frozenset(name for name in EVENT_TYPES if name.startswith("interrupt_"))


class Ending(Enum):
    RUNNING = "running"
    ENDED = "ended"
    NOT_CLEAN = "did not end cleanly"
    MOMENT = "at a moment"


class SignalEdge(NamedTuple):
    """A tuple, because each signal of a log makes one and hashes it."""

    signal_name: str
    source: str
    target: str
    target_type: str
    decision: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """The first events of a kind, and how many more there are."""

    events: tuple[Event, ...]
    more: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    started: Payload
    started_ns: int
    last_event_ns: int
    events: int
    head: str
    ending: Ending
    ended: Payload
    by_type: dict[str, int]
    by_decision: dict[str, int]
    programs: Top[str]
    shadowing: Top[tuple[str, str]]  # by path, and the system's command of that name
    signals: Top[SignalEdge]
    interrupts: Listed
    deaths: Listed
    not_plainly_let_through: Listed  # denied, redirected, absorbed, approved: with their rules
    recordings: Listed
    why: str  # COMMAND ended, in one sentence
    stopped: Stopped | None  # None where it is not, or is over
    why_killed: dict[int, str]  # by the seq of the exit
    processes: int
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
    def __init__(self) -> None:
        self._first: Event | None = None
        self._last: Event | None = None
        self._events = 0
        self._by_type: dict[str, int] = {}
        self._by_decision: dict[str, int] = {}
        self._programs: Tally[str] = Tally()
        self._shadowing: Tally[tuple[str, str]] = Tally()
        self._signals: Tally[SignalEdge] = Tally()
        self._interrupts = _Lister()
        self._deaths = _Lister()
        self._not_plain = _Lister()
        self._recordings = _Lister()
        self._why = WhyFold()
        self._tree = ProcessTree()

    def add(self, event: Event) -> None:
        if self._first is None:
            self._first = event
        self._last = event
        self._events += 1
        type_name = event.type
        payload = event.payload
        self._by_type[type_name] = self._by_type.get(type_name, 0) + 1
        decision = payload.get("decision")
        if decision is not None:
            decision = str(decision)
            self._by_decision[decision] = self._by_decision.get(decision, 0) + 1
        self._why.add(event)
        if type_name in NOT_PLAIN_TYPES:
            self._not_plain.add(event)
        if type_name in EXEC_TYPES:
            self._exec(event)
        elif type_name in SIGNAL_TYPES:
            self._signals.add(_signal_edge(payload))
        elif type_name == "process_exited":
            self._exit(event)
        elif type_name == "recording_ended":
            self._recordings.add(event)
        elif type_name in INTERRUPT_TYPES:
            self._interrupts.add(event)

    def result(self, ending: Ending) -> Summary:
        """`ending`: RUNNING or NOT_CLEAN is what the log can't say; ENDED is what it says."""
        first, last = self._first, self._last
        why = self._why.of()
        ended = last.payload if last is not None and last.type == "session_ended" else {}
        return Summary(
            started=first.payload if first is not None else {},
            started_ns=first.time_ns if first is not None else 0,
            last_event_ns=last.time_ns if last is not None else 0,
            events=self._events,
            head=last.hash if last is not None else "",
            ending=Ending.ENDED if ended else ending,
            ended=ended,
            by_type=dict(self._by_type),
            by_decision=dict(self._by_decision),
            programs=self._programs.top(PROGRAMS_SHOWN),
            shadowing=self._shadowing.top(PROGRAMS_SHOWN),
            signals=self._signals.top(SIGNALS_SHOWN),
            interrupts=self._interrupts.result(),
            deaths=self._deaths.result(),
            not_plainly_let_through=self._not_plain.result(),
            recordings=self._recordings.result(),
            why=why.sentence if why is not None else "",
            stopped=None if ended else self._why.stopped,
            why_killed={each.seq: each.sentence for each in self._why.deaths},
            processes=self._tree.processes,
            running_processes=self._tree.running,
            tree=self._tree.lines(),
            tree_not_shown=self._tree.not_shown,
        )

    def _exec(self, event: Event) -> None:
        payload = event.payload
        path = str(payload.get("path") or "")
        argv = payload.get("argv")
        if event.type != "exec_denied":
            self._programs.add(path[:_NAME_CHARACTERS_KEPT])
        if shadows := payload.get("shadows"):
            kept = path[:_NAME_CHARACTERS_KEPT], str(shadows)[:_NAME_CHARACTERS_KEPT]
            self._shadowing.add(kept)
        self._tree.executed(
            event.pid,
            number(payload.get("ppid")),
            argv if argv and isinstance(argv, list) else [path],
        )

    def _exit(self, event: Event) -> None:
        payload = event.payload
        signal_name = str(payload.get("signal_name") or "")
        self._tree.exited(event.pid, payload.get("exit_code"), signal_name)
        if signal_name:
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

    def result(self) -> Listed:
        return Listed(events=tuple(self._events), more=self._more)


def _signal_edge(payload: Payload) -> SignalEdge:
    get = payload.get
    return SignalEdge(
        str(get("signal_name") or ""),
        str(get("source_cmd") or "")[:_NAME_CHARACTERS_KEPT],
        str(get("target_cmd") or "")[:_NAME_CHARACTERS_KEPT],
        str(get("target_type") or ""),
        str(get("decision") or ""),
    )
