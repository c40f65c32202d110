"""Every view with its columns, and how a column comes from what happened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sigwrap.escape import shell_words
from sigwrap.events import EXEC_TYPES, SIGNAL_TYPES, Event, texts, times
from sigwrap.report.folds.decisions import DENIED, outcome
from sigwrap.report.folds.ending import Ending
from sigwrap.report.forms.times import iso_time
from sigwrap.report.query.processes import PROCESS_TYPES, Process, ProcessesFold
from sigwrap.report.query.values import Value, as_json, integer, optional_json, words

TEXT, INTEGER, REAL = "TEXT", "INTEGER", "REAL"
_INT64_MAX = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An event, and of which session."""

    session: str
    event: Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A session as a whole."""

    session: str
    first: Event
    last: Event
    ending: Ending  # where the log doesn't say that itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    name: str
    type: str
    meaning: str
    of: Callable[[Any], Value]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """`types`: of the events that it is made of, and `prefixes` how their names begin. A view
    without either is made of all events."""

    name: str
    meaning: str
    columns: tuple[Column, ...]
    types: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()

    def takes(self, type_name: str) -> bool:
        if self.types or self.prefixes:
            return type_name in self.types or type_name.startswith(self.prefixes)
        return True

    def row(self, thing: object) -> tuple[Value, ...]:
        return tuple(column.of(thing) for column in self.columns)


def _field(name: str, meaning: str, field: str = "") -> Column:
    field = field or name
    return Column(
        name=name, type=TEXT, meaning=meaning, of=lambda told: words(told.event.payload.get(field))
    )


def _number(name: str, meaning: str, field: str = "") -> Column:
    field = field or name
    return Column(
        name=name,
        type=INTEGER,
        meaning=meaning,
        of=lambda told: integer(told.event.payload.get(field)),
    )


def _json(name: str, meaning: str) -> Column:
    return Column(
        name=name,
        type=TEXT,
        meaning=meaning,
        of=lambda told: optional_json(told.event.payload.get(name)),
    )


def _command(payload: dict[str, Any], field: str = "argv") -> str | None:
    argv = payload.get(field)
    return words(shell_words(texts(argv))) if isinstance(argv, list) else None


def _time(time_ns: int | None) -> str | None:
    return None if time_ns is None else iso_time(time_ns)


SESSION = Column(
    name="session", type=TEXT, meaning="the session's id", of=lambda thing: words(thing.session)
)
WHERE = (
    SESSION,
    Column(name="seq", type=INTEGER, meaning="the event's number", of=lambda told: told.event.seq),
    Column(
        name="time", type=TEXT, meaning="when, in UTC", of=lambda told: iso_time(told.event.time_ns)
    ),
    Column(
        name="time_ns",
        type=INTEGER,
        meaning="the same, in ns since 1970",
        of=lambda told: told.event.time_ns,
    ),
)
TYPE = Column(
    name="type",
    type=TEXT,
    meaning="what happened: events.md",
    of=lambda told: words(told.event.type),
)
PID = Column(name="pid", type=INTEGER, meaning="the process", of=lambda told: told.event.pid)
OUTCOME = Column(
    name="outcome",
    type=TEXT,
    meaning="what became of it: denied, redirected, absorbed, approved, audited or allowed",
    of=lambda told: outcome(told.event) or None,
)
DECISION = _field("decision", "the policy's word for it")
RULE = _field("rule", "the rule that decided", "rule_name")
REASON = _field("reason", "why")
MESSAGE = _field("message", "of the rule, where it has one")
COUNT = Column(
    name="count",
    type=INTEGER,
    meaning="how often: what a process does to itself over and over is one event a second",
    of=lambda told: min(times(told.event.payload), _INT64_MAX),
)
COMMAND = Column(
    name="command",
    type=TEXT,
    meaning="what was asked for, as a shell would quote it",
    of=lambda told: _command(told.event.payload),
)
PAYLOAD = Column(
    name="payload",
    type=TEXT,
    meaning="all the rest, as JSON: json_extract(payload, '$.reason')",
    of=lambda told: as_json(told.event.payload),
)


def _run(name: str, type_name: str, meaning: str, of: Callable[[Run], Value]) -> Column:
    return Column(name=name, type=type_name, meaning=meaning, of=of)


def _started(name: str, meaning: str, convert: Callable[[object], Value] = words) -> Column:
    kind = INTEGER if convert is integer else TEXT
    return _run(name, kind, meaning, lambda run: convert(run.first.payload.get(name)))


def _account(run: Run) -> dict[str, Any]:
    """What the end of a session says."""
    return run.last.payload if run.last.type == "session_ended" else {}


def _state(run: Run) -> str:
    if run.last.type == "session_ended":
        return "ended"
    return run.ending.value


_SESSIONS = View(
    name="sessions",
    meaning="One row a session.",
    columns=(
        SESSION,
        _started("name", "its `--name`"),
        _run(
            "command",
            TEXT,
            "what was run, as a shell would quote it",
            lambda run: _command(run.first.payload, "command"),
        ),
        _run(
            "state",
            TEXT,
            "ended, running, did not end cleanly, or at a moment (a checkpoint)",
            _state,
        ),
        _run(
            "exit_status",
            INTEGER,
            "sigwrap's own",
            lambda run: integer(_account(run).get("exit_status")),
        ),
        _run("reason", TEXT, "why it ended", lambda run: words(_account(run).get("reason"))),
        _run("started", TEXT, "when, in UTC", lambda run: iso_time(run.first.time_ns)),
        _run("started_ns", INTEGER, "the same, in ns since 1970", lambda run: run.first.time_ns),
        _run("last_event", TEXT, "when, in UTC", lambda run: iso_time(run.last.time_ns)),
        _run("last_event_ns", INTEGER, "the same", lambda run: run.last.time_ns),
        _run(
            "duration_s",
            REAL,
            "from the first event to the last",
            lambda run: (run.last.time_ns - run.first.time_ns) / 1e9,
        ),
        _run("events", INTEGER, "how many", lambda run: run.last.seq),
        _started("user", "who ran it"),
        _started("uid", "the same, as a number", integer),
        _started("host", "where"),
        _started("cwd", "in which folder"),
        _started("policy", "under which policy"),
        _started("policy_digest", "of its text"),
        _started("profile", "what `--profile` said"),
        _started("missing", "what sigwrap could not do there, as JSON", optional_json),
        _started("inside", "the session that it joined"),
        _started("sigwrap", "its version"),
        _started("kernel", "its version"),
        _started("machine", "its architecture"),
        _run("head", TEXT, "the hash of the last event", lambda run: words(run.last.hash)),
    ),
    types=frozenset({"session_started"}),
)

_EVENTS = View(
    name="events",
    meaning="One row an event, of any type.",
    columns=(
        *WHERE,
        TYPE,
        PID,
        PAYLOAD,
        Column(
            name="hash", type=TEXT, meaning="of the chain", of=lambda told: words(told.event.hash)
        ),
    ),
)

_TRIES = (
    "A shell that is refused a command tries the next folder of `PATH`: each try is a row, where "
    "`sigwrap report` counts them once."
)

_EXECS = View(
    name="execs",
    meaning=f"One row a program that a process asked to run. {_TRIES}",
    columns=(
        *WHERE,
        PID,
        _number("ppid", "its parent"),
        _number("depth", "how deep in the tree it is"),
        COMMAND,
        OUTCOME,
        RULE,
        REASON,
        MESSAGE,
        DECISION,
        _field("path", "the file"),
        _json("argv", "the words, as JSON"),
        _field("cwd", "in which folder"),
        _field("comm", "what the process was called when it asked"),
        Column(
            name="replacement",
            type=TEXT,
            meaning="what ran instead, as a shell would quote it",
            of=lambda told: _command(told.event.payload, "replacement_argv"),
        ),
        _field("shadows", "the system's command whose name it has"),
        _field("approval_id", "of the request that was said yes to"),
        _field("syscall", "by which call"),
        _number("evaluation_us", "how long deciding took, in µs"),
    ),
    types=EXEC_TYPES,
)

_SIGNALS = View(
    name="signals",
    meaning="One row a signal that a process asked to send. Count them by `sum(count)`.",
    columns=(
        *WHERE,
        _field("signal_name", "such as SIGTERM"),
        _number("signal", "the same, as a number"),
        _number("source_pid", "who sent it"),
        _field("source", "what that is called", "source_cmd"),
        _number("target_pid", "to whom; what kill(2) was given"),
        _field("target", "what that is called", "target_cmd"),
        _field("target_type", "self, child, session, system, …"),
        OUTCOME,
        COUNT,
        RULE,
        MESSAGE,
        DECISION,
        _number("original_signal", "what was asked for, where another was sent"),
        _field("syscall", "by which call"),
        _number("evaluation_us", "how long deciding took, in µs"),
    ),
    types=SIGNAL_TYPES,
)


def _who(told: Told) -> str | None:
    field = "source_cmd" if told.event.type in SIGNAL_TYPES else "comm"
    return words(told.event.payload.get(field))


def _what(told: Told) -> str | None:
    payload = told.event.payload
    if told.event.type not in SIGNAL_TYPES:
        return _command(payload) or words(payload.get("path"))
    named = {name: words(payload.get(name)) for name in ("signal_name", "target_cmd", "target_pid")}
    return f"{named['signal_name']} to {named['target_cmd']} ({named['target_pid']})"


def _denied(types: frozenset[str]) -> frozenset[str]:
    def denies(name: str) -> bool:
        return outcome(Event(seq=0, time_ns=0, type=name, pid=0, payload={}, hash="")) == DENIED

    return frozenset(filter(denies, types))


_DENIALS = View(
    name="denials",
    meaning="One row an exec or a signal that was denied, also where somebody was asked first. "
    + _TRIES,
    columns=(
        *WHERE,
        Column(
            name="kind",
            type=TEXT,
            meaning="exec or signal",
            of=lambda told: "signal" if told.event.type in SIGNAL_TYPES else "exec",
        ),
        PID,
        Column(name="who", type=TEXT, meaning="what the process is called", of=_who),
        Column(
            name="what",
            type=TEXT,
            meaning="the command as a shell would quote it, or the signal and its target",
            of=_what,
        ),
        COUNT,
        RULE,
        REASON,
        MESSAGE,
    ),
    types=_denied(EXEC_TYPES | SIGNAL_TYPES),
)


def _process(name: str, type_name: str, meaning: str, of: Callable[[Process], Value]) -> Column:
    return Column(name=name, type=type_name, meaning=meaning, of=of)


_PROCESSES = View(
    name="processes",
    meaning="One row a process that asked to run something, or whose end was seen.",
    columns=(
        SESSION,
        _process("pid", INTEGER, "numbers are used again", lambda each: each.pid),
        _process("ppid", INTEGER, "its parent", lambda each: integer(each.ppid)),
        _process("depth", INTEGER, "how deep in the tree it is", lambda each: integer(each.depth)),
        _process(
            "command",
            TEXT,
            "what it ran last; empty where nothing",
            lambda each: each.command and words(each.command),
        ),
        _process("comm", TEXT, "what the kernel last called it", lambda each: words(each.comm)),
        _process("path", TEXT, "the file that it ran last", lambda each: words(each.path)),
        _process(
            "execs", INTEGER, "how many of its execs were let through", lambda each: each.execs
        ),
        _process("denied", INTEGER, "how many were denied", lambda each: each.denied),
        _process(
            "exit_code", INTEGER, "where it ended by itself", lambda each: integer(each.exit_code)
        ),
        _process("signal_name", TEXT, "that it died of", lambda each: words(each.signal_name)),
        _process("signal", INTEGER, "the same, as a number", lambda each: integer(each.signal)),
        _process(
            "started", TEXT, "its first event, in UTC", lambda each: iso_time(each.started_ns)
        ),
        _process("started_ns", INTEGER, "the same, in ns since 1970", lambda each: each.started_ns),
        _process("ended", TEXT, "its end, where one was seen", lambda each: _time(each.ended_ns)),
        _process("ended_ns", INTEGER, "the same", lambda each: each.ended_ns),
    ),
    types=PROCESS_TYPES,
)


def _later(name: str, prefix: str) -> View:
    """Of types that no sigwrap writes yet: they are found by their names."""
    return View(
        name=name,
        meaning=f"Events called `{prefix}…`. This version records none: the view is empty.",
        columns=(*WHERE, TYPE, PID, OUTCOME, DECISION, RULE, REASON, PAYLOAD),
        prefixes=(prefix,),
    )


VIEWS: dict[str, View] = {
    view.name: view
    for view in (
        _SESSIONS,
        _EXECS,
        _SIGNALS,
        _DENIALS,
        _PROCESSES,
        _EVENTS,
        _later("files", "file_"),
        _later("network", "network_"),
    )
}


# Of an event of any type: what `sigwrap export --format csv` writes.
EXPORTED = (
    *WHERE,
    TYPE,
    PID,
    _number("ppid", "its parent"),
    COMMAND,
    _field("path", "the file"),
    _field("signal_name", "such as SIGTERM"),
    _field("source", "who sent it", "source_cmd"),
    _field("target", "to whom", "target_cmd"),
    _number("target_pid", "the same, as a number"),
    OUTCOME,
    COUNT,
    RULE,
    REASON,
    MESSAGE,
    _number("exit_code", "of a process that ended by itself"),
    _number("exit_status", "of the session"),
)


class Rows:
    """Of some views, from the events of one session, in memory that doesn't grow with them."""

    def __init__(self, session: str, views: list[View]) -> None:
        self._session = session
        self._views = [view for view in views if view not in (_SESSIONS, _PROCESSES)]
        self._processes = ProcessesFold(session) if _PROCESSES in views else None
        self._of_type: dict[str, list[View]] = {}

    def takes(self, type_name: object) -> bool:
        if not isinstance(type_name, str):
            return True  # reading it says what is wrong
        return bool(self._taking(type_name)) or (
            self._processes is not None and _PROCESSES.takes(type_name)
        )

    def add(self, event: Event) -> Iterator[tuple[View, tuple[Value, ...]]]:
        told = Told(session=self._session, event=event)
        for view in self._taking(event.type):
            yield view, view.row(told)
        if self._processes is not None and _PROCESSES.takes(event.type):
            yield from ((_PROCESSES, _PROCESSES.row(each)) for each in self._processes.add(event))

    def rest(self) -> Iterator[tuple[View, tuple[Value, ...]]]:
        if self._processes is not None:
            yield from ((_PROCESSES, _PROCESSES.row(each)) for each in self._processes.rest())

    def _taking(self, type_name: str) -> list[View]:
        found = self._of_type.get(type_name)
        if found is None:
            found = [view for view in self._views if view.takes(type_name)]
            if len(self._of_type) < _TYPES_KEPT:
                self._of_type[type_name] = found
        return found

    @property
    def are_of_events(self) -> bool:
        return bool(self._views) or self._processes is not None


_TYPES_KEPT = 1_000  # a log from elsewhere may hold any number of them


def session_row(run: Run) -> tuple[View, tuple[Value, ...]]:
    return _SESSIONS, _SESSIONS.row(run)
