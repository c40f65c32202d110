"""What happened in a session: every fold that a report needs, in memory that doesn't grow with the
number of events."""

from __future__ import annotations

from functools import cached_property

from sigwrap.bare import NamedTuple
from sigwrap.events import (
    ALLOWED,
    APPROVAL_ANSWERS,
    CONNECTION_TYPES,
    DENIED,
    EVENT_TYPES,
    EXEC_TYPES,
    OUTCOME_OF,
    SIGNAL_TYPES,
    Counts,
    Event,
    Payload,
    number,
    outcome,
    text,
    texts,
    times,
)
from sigwrap.policy.judge.rules import Policy
from sigwrap.policy.presets import as_meant
from sigwrap.report.check.decisions import NoPolicy, recorded_policy
from sigwrap.report.folds.attention import Attention, By, HandedFold, may_discard_changes
from sigwrap.report.folds.bounded import Latest, Listed, Tally
from sigwrap.report.folds.ending import Ending
from sigwrap.report.folds.incidents import INCIDENT_TYPES, Incidents
from sigwrap.report.folds.selection import Selection
from sigwrap.report.folds.steps import Exec, Steps
from sigwrap.report.folds.tree import CommandLine, Node, ProcessTree, command_line
from sigwrap.report.folds.why import Explained, WhyFold
from sigwrap.report.folds.written import WrittenFold

LISTED = 50  # events or keys of a kind
_PROGRAMS_LISTED = 20
_CHARACTERS_KEPT = 200
_LONGEST_NS = 1 << 63
_POLICY_CHARACTERS = 100_000  # of a policy that isn't shipped: half a second
_TYPES_KEPT = 200
_OTHERS = "others"
_STREAMS = frozenset({"stdin", "stdout", "stderr"})
_NO_END = "its end is not recorded"

_make = tuple.__new__  # takes half the time of a call of the class

_COUNTED = frozenset({*OUTCOME_OF, *APPROVAL_ANSWERS})
INTERRUPT_TYPES = frozenset(name for name in EVENT_TYPES if name.startswith("interrupt_"))


class SignalEdge(NamedTuple):
    """A tuple, because every signal of a log makes and hashes one."""

    signal_name: str
    source: str
    target: str
    target_type: str
    outcome: str


class Talk(NamedTuple):
    """A destination, and the outcome."""

    direction: str
    protocol: str
    destination: str
    outcome: str


class Failure(NamedTuple):
    """The exit code of a process that ran something."""

    command: CommandLine
    exit_code: int


class Summary:
    """`selection`: the part of the session to report; None for all of it."""

    def __init__(self, selection: Selection | None = None) -> None:
        self.selection = selection
        self.started: Payload = {}
        self.started_ns = self.last_event_ns = 0
        self.head = ""
        self.events = 0
        self.ended: Payload = {}
        self.ending = Ending.RUNNING
        self.by_type: dict[str, int] = {}
        self.counts = Counts()
        self.handed = HandedFold()
        self.attention = Attention()
        self.discards = Listed(LISTED)  # execs that may have discarded uncommitted changes
        self.steps = Steps()
        self.incidents = Incidents()
        self.programs: Tally[str] = Tally(_PROGRAMS_LISTED)
        # By path, and the system's command of that name.
        self.shadowing: Tally[tuple[str, str]] = Tally(_PROGRAMS_LISTED)
        self.edges: Tally[SignalEdge] = Tally(LISTED)
        self.talks: Tally[Talk] = Tally(LISTED)
        self.files = WrittenFold()
        self.interrupts = Listed(LISTED)
        self.deaths = Listed(LISTED)
        self.failures: Tally[Failure] = Tally(LISTED)
        self.recordings = Listed(LISTED)
        self.explained = Explained("", None, {})
        self.tree: tuple[Node, ...] = ()
        self._waiting: Latest[str, Event] = Latest(LISTED)
        self._recorded_so_far: Latest[int, Event] = Latest(LISTED)  # by pid
        self._last: Event | None = None
        self._why = WhyFold()
        self._known = self._why.processes
        self.processes = ProcessTree(self._known)

    def add(self, event: Event) -> bool:
        """Return whether the event is selected and not a retry of an exec along PATH."""
        if self._last is None:
            self.started = event.payload if event.type == "session_started" else {}
            self.started_ns = event.time_ns
            self.steps.start(event.payload)
        self._last = event
        self.events += 1
        name = event.type
        is_selected = self.selection is None or self.selection.takes(event)
        if is_selected:
            if name in _COUNTED:
                self.counts.add(name, event.payload)
            by_type = self.by_type
            if name not in by_type and name not in EVENT_TYPES and len(by_type) >= _TYPES_KEPT:
                name = _OTHERS  # only in a log that sigwrap didn't write
            by_type[name] = by_type.get(name, 0) + 1
        if name == "process_exited":
            self._exit(event, is_selected)
        elif name in EXEC_TYPES:
            return self._exec(event, is_selected)
        else:
            self._why.add(event)
            self._take(event, is_selected)
        return is_selected

    def _take(self, event: Event, is_selected: bool) -> None:
        match event.type:
            case "exec_failed":
                if (process := self._known.get(event.pid)) is not None:
                    self.processes.not_started(process)
            case "tool_call_judged":
                self.steps.judge(event, is_selected)
            case "recording_ended":
                self._recorded_so_far.pop(event.pid, None)
                if is_selected:
                    self.recordings.add(event)
            case name if name in APPROVAL_ANSWERS:
                self._waiting.pop(str(event.payload.get("approval_id")), None)
                self.attention.answered(event)
            case _ if is_selected:
                self._take_selected(event)

    def _take_selected(self, event: Event) -> None:
        match event.type:
            case name if name in SIGNAL_TYPES:
                self._signal(event)
            case name if name in CONNECTION_TYPES:
                self._connection(event)
            case "file_audited":
                self.files.add(event.payload)
            case "file_refused_likely":
                get = event.payload.get
                self._attend(event, outcome(event), event.pid, text(get("comm")))
                what = f"{text(get('operation'))} {text(get('path'))}"
                self._deny(event.pid, f"probably refused: {what}")
            case "work_handed_outside":
                self.handed.add(event)
            case "approval_requested":
                self._waiting[str(event.payload.get("approval_id"))] = event
            case "io_recorded":
                self._recorded(event)
            case name if name in INTERRUPT_TYPES:
                self.interrupts.add(event)
            case name if name in INCIDENT_TYPES:
                self.incidents.add(event)

    def end(self, ending: Ending) -> Summary:
        """Take how the log ends, if it has no session_ended."""
        if (last := self._last) is not None:
            self.last_event_ns, self.head = last.time_ns, last.hash
            if last.type == "session_ended":
                self.ended, ending = last.payload, Ending.ENDED if last.payload else ending
        self.ending = ending
        self.steps.end(is_over=self.is_over)
        self.recordings.events += self._recorded_so_far.values()
        self.explained = self._why.explained(ending)
        self.tree = self.processes.lines()
        return self

    @property
    def is_over(self) -> bool:
        return self.ending in (Ending.ENDED, Ending.NOT_CLEAN)

    @cached_property
    def policy(self) -> Policy | None:
        """The recorded policy; None if it cannot be loaded or is too long."""
        try:
            return recorded_policy(self.started, longest=_POLICY_CHARACTERS)
        except NoPolicy:
            return None

    @property
    def duration_ns(self) -> int:
        recorded = self.ended.get("duration_ns")
        if isinstance(recorded, int) and 0 <= recorded < _LONGEST_NS:
            return recorded
        return self.last_event_ns - self.started_ns

    @property
    def waiting(self) -> list[Event]:
        """The approval requests without an answer."""
        return list(self._waiting.values())

    def _exec(self, event: Event, is_selected: bool) -> bool:
        """Return whether it is selected and no retry."""
        get = event.payload.get
        path = text(get("path"))
        given = texts(get("argv")) or [path]
        words = as_meant(given)
        line = command_line(words)
        process = self._known.executed(event, line)
        if get("retry") is True:
            return False
        became = outcome(event)
        is_refused = became == DENIED
        ppid, below = number(get("ppid")), number(get("below"))
        if is_selected:
            if became != ALLOWED:
                self._attend(event, became, event.pid, text(get("comm")), ppid, below)
            if not is_refused:
                self.programs.add(path[:_CHARACTERS_KEPT])
            if shadows := get("shadows"):
                self.shadowing.add((path[:_CHARACTERS_KEPT], str(shadows)[:_CHARACTERS_KEPT]))
            if not is_refused and may_discard_changes(words):
                self.discards.add(event)
        is_wrapped = words is not given
        run = _make(Exec, (event, ppid, below, words, line, is_wrapped, became, is_selected))
        step = self.steps.exec(run, process.step or self._known.step_of(ppid, below))
        process.step = step or process.step
        if is_refused:
            self.processes.refused(process, run)
        else:
            self.processes.executed(process, run)
        return is_selected

    def _signal(self, event: Event) -> None:
        get = event.payload.get
        became = outcome(event)
        name, target = text(get("signal_name")), text(get("target_cmd"))
        source_cmd, source = text(get("source_cmd")), number(get("source_pid")) or event.pid
        kept = source_cmd[:_CHARACTERS_KEPT], target[:_CHARACTERS_KEPT]
        edge = SignalEdge(name, *kept, text(get("target_type")), became)
        self.edges.add(edge, times(event.payload))
        if became == DENIED:
            self._deny(source, f"{name} to {target}")
        if became != ALLOWED:
            self._attend(event, became, source, source_cmd)

    def _connection(self, event: Event) -> None:
        get = event.payload.get
        became, destination = outcome(event), text(get("destination"))
        kept = destination[:_CHARACTERS_KEPT]
        talk = Talk(text(get("direction")), text(get("protocol")), kept, became)
        self.talks.add(talk, times(event.payload))
        if became == DENIED:
            self._deny(event.pid, f"connection to {destination}")
        if became != ALLOWED:
            self._attend(event, became, event.pid, text(get("comm")))

    def _deny(self, pid: int, what: str) -> None:
        if (step := self._known.step_of(pid)) is not None:
            step.deny(what)

    def _attend(
        self, event: Event, became: str, pid: int, comm: str, ppid: int = 0, below: int = 0
    ) -> None:
        runs = self._known.runs(pid, ppid, below)
        self.attention.add(event, became, By(pid, comm) if runs is None else By(*runs))

    def _exit(self, event: Event, is_selected: bool) -> None:
        process, code = self._why.exited(event), event.payload.get("exit_code")
        if code and is_selected and isinstance(code, int) and process.ran is not None:
            self.failures.add(Failure(process.ran.command, code))
        if process.step is not None:
            process.step.end(event)
        self.processes.exited(event, process, is_selected)
        # 10,000 ended ones are kept, which shall keep no steps.
        process.step = process.node = process.node_before = None
        self.attention.ended(event.pid)
        if is_selected and text(event.payload.get("signal_name")):
            self.deaths.add(event)

    def _recorded(self, event: Event) -> None:
        """Add up a recording, in case no end of it follows."""
        get = event.payload.get
        known = self._recorded_so_far
        if event.pid not in known:
            so_far = {"stdin": 0, "stdout": 0, "stderr": 0, "reason": _NO_END}
            known[event.pid] = event._replace(type="recording_ended", payload=so_far)
        stream = text(get("stream"))
        if stream in _STREAMS:
            known[event.pid].payload[stream] = number(get("offset")) + number(get("size"))
