"""Every view, with its columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic

from sigwrap.events import (
    CONNECTION_TYPES,
    DECISION_TYPES,
    EXEC_TYPES,
    SIGNAL_TYPES,
    Event,
    Payload,
    kind_of,
)
from sigwrap.report.folds.decisions import DENIED, outcome
from sigwrap.report.folds.ending import Ending
from sigwrap.report.forms.times import iso_time
from sigwrap.report.query.columns import (
    COMMAND,
    COUNT,
    DECISION,
    INTEGER,
    MESSAGE,
    OUTCOME,
    PAYLOAD,
    PID,
    REAL,
    REASON,
    RULE,
    SESSION,
    TEXT,
    TYPE,
    WHERE,
    Column,
    Thing,
    Told,
    command_line,
    integer_field,
    json_field,
    text_field,
)
from sigwrap.report.query.processes import PROCESS_TYPES, Process
from sigwrap.report.query.values import Value, integer, optional_json, words


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """A session as a whole."""

    session: str
    first: Event
    last: Event
    ending: Ending  # where the log doesn't say that itself


@dataclass(frozen=True, slots=True, kw_only=True)
class View(Generic[Thing]):
    """`types`: of the events that it is made of; without any, of all events."""

    name: str
    meaning: str
    columns: tuple[Column[Thing], ...]
    types: frozenset[str] = frozenset()

    def takes(self, type_name: str) -> bool:
        return not self.types or type_name in self.types

    def row(self, thing: Thing) -> tuple[Value, ...]:
        return tuple(column.of(thing) for column in self.columns)


def _started(name: str, meaning: str, convert: Callable[[object], Value] = words) -> Column[Run]:
    kind = INTEGER if convert is integer else TEXT
    return Column(name, kind, meaning, lambda run: convert(run.first.payload.get(name)))


def _account(run: Run) -> Payload:
    """What the end of a session says."""
    return run.last.payload if run.last.type == "session_ended" else {}


def _state(run: Run) -> str:
    if run.last.type == "session_ended":
        return "ended"
    return run.ending.value


SESSIONS: View[Run] = View(
    name="sessions",
    meaning="One row a session.",
    columns=(
        SESSION,
        _started("name", "its `--name`"),
        Column(
            "command",
            TEXT,
            "what was run, as a shell would quote it",
            lambda run: command_line(run.first.payload, "command"),
        ),
        Column(
            "state",
            TEXT,
            "ended, running, did not end cleanly, or at a moment (a checkpoint)",
            _state,
        ),
        Column(
            "exit_status",
            INTEGER,
            "sigwrap's own",
            lambda run: integer(_account(run).get("exit_status")),
        ),
        Column("reason", TEXT, "why it ended", lambda run: words(_account(run).get("reason"))),
        Column("started", TEXT, "when, in UTC", lambda run: iso_time(run.first.time_ns)),
        Column("started_ns", INTEGER, "the same, in ns since 1970", lambda run: run.first.time_ns),
        Column("last_event", TEXT, "when, in UTC", lambda run: iso_time(run.last.time_ns)),
        Column("last_event_ns", INTEGER, "the same", lambda run: run.last.time_ns),
        Column(
            "duration_s",
            REAL,
            "from the first event to the last",
            lambda run: (run.last.time_ns - run.first.time_ns) / 1e9,
        ),
        Column("events", INTEGER, "how many", lambda run: run.last.seq),
        _started("user", "who ran it"),
        _started("uid", "the same, as a number", integer),
        _started("host", "where"),
        _started("cwd", "in which folder"),
        _started("policy", "under which policy"),
        _started("policy_digest", "of its text and its variables, such as the folder"),
        _started("profile", "what `--profile` said"),
        _started("missing", "what sigwrap could not do there, as JSON", optional_json),
        _started("inside", "the session that it joined"),
        _started("sigwrap", "its version"),
        _started("kernel", "its version"),
        _started("machine", "its architecture"),
        Column("head", TEXT, "the hash of the last event", lambda run: words(run.last.hash)),
    ),
    types=frozenset({"session_started"}),
)

_EVENTS: View[Told] = View(
    name="events",
    meaning="One row an event, of any type.",
    columns=(
        *WHERE,
        TYPE,
        PID,
        PAYLOAD,
        Column("hash", TEXT, "of the chain", lambda told: words(told.event.hash)),
    ),
)

_TRIES = (
    "A shell that is refused a command tries the next folder of `PATH`: each try is a row, where "
    "`sigwrap report` counts them once."
)

_EXECS: View[Told] = View(
    name="execs",
    meaning=f"One row a program that a process asked to run. {_TRIES}",
    columns=(
        *WHERE,
        PID,
        integer_field("ppid", "its parent"),
        integer_field("depth", "how deep in the tree it is"),
        COMMAND,
        OUTCOME,
        RULE,
        REASON,
        MESSAGE,
        DECISION,
        text_field("path", "the file"),
        json_field("argv", "the words, as JSON"),
        text_field("cwd", "in which folder"),
        text_field("comm", "what the process was called when it asked"),
        Column(
            "replacement",
            TEXT,
            "what ran instead, as a shell would quote it",
            lambda told: command_line(told.event.payload, "replacement_argv"),
        ),
        text_field("shadows", "the system's command whose name it has"),
        text_field("approval_id", "of the request that was said yes to"),
        text_field("syscall", "by which call"),
        integer_field("evaluation_us", "how long deciding took, in µs"),
    ),
    types=EXEC_TYPES,
)

_SIGNALS: View[Told] = View(
    name="signals",
    meaning="One row a signal that a process asked to send. Count them by `sum(count)`.",
    columns=(
        *WHERE,
        text_field("signal_name", "such as SIGTERM"),
        integer_field("signal", "the same, as a number"),
        integer_field("source_pid", "who sent it"),
        text_field("source", "what that is called", "source_cmd"),
        integer_field("target_pid", "to whom; what kill(2) was given"),
        text_field("target", "what that is called", "target_cmd"),
        text_field("target_type", "self, child, session, system, …"),
        OUTCOME,
        COUNT,
        RULE,
        MESSAGE,
        DECISION,
        integer_field("original_signal", "what was asked for, where another was sent"),
        text_field("syscall", "by which call"),
        integer_field("evaluation_us", "how long deciding took, in µs"),
    ),
    types=SIGNAL_TYPES,
)


_CONNECTIONS: View[Told] = View(
    name="connections",
    meaning="One row a destination that a process asked to connect or send to, or to listen at. "
    "Count them by `sum(count)`.",
    columns=(
        *WHERE,
        PID,
        text_field("who", "what the process is called", "comm"),
        text_field("direction", "connect or bind"),
        text_field("protocol", "tcp, udp, unix or other"),
        text_field("destination", "a name or an address with its port, or `unix:` and a socket"),
        text_field("address", "the address by itself"),
        integer_field("port", "of that"),
        OUTCOME,
        COUNT,
        RULE,
        MESSAGE,
        DECISION,
        text_field("syscall", "by which call"),
        integer_field("evaluation_us", "how long deciding took, in µs"),
    ),
    types=CONNECTION_TYPES,
)


_OUTSIDE: View[Told] = View(
    name="outside",
    meaning="One row a server outside of the session that a process connected to, and whose work "
    "is not judged. Count them by `sum(count)`.",
    columns=(
        *WHERE,
        PID,
        text_field("who", "what the process is called", "comm"),
        text_field("socket", "where the server listens"),
        integer_field("peer_pid", "the server"),
        text_field("peer", "what that is called", "peer_cmd"),
        Column(
            "command",
            TEXT,
            "how it was started, as a shell would quote it",
            lambda told: command_line(told.event.payload, "peer_argv"),
        ),
        COUNT,
    ),
    types=frozenset({"work_handed_outside"}),
)


_FILES: View[Told] = View(
    name="files",
    meaning="One row a file that a process was about to write, make, delete or rename, where a "
    "rule audits that. Count them by `sum(count)`.",
    columns=(
        *WHERE,
        PID,
        text_field("who", "what the process is called", "comm"),
        text_field("operation", "write, create, delete, rename, or unseen"),
        text_field("path", "which file"),
        text_field("to", "its other name, of a rename or a link"),
        COUNT,
        RULE,
        REASON,
        text_field("syscall", "by which call"),
        integer_field("evaluation_us", "how long it took to find out, in µs"),
    ),
    types=frozenset({"file_audited"}),
)


def _who(told: Told) -> str | None:
    field = "source_cmd" if told.event.type in SIGNAL_TYPES else "comm"
    return words(told.event.payload.get(field))


def _what(told: Told) -> str | None:
    payload = told.event.payload
    if told.event.type in CONNECTION_TYPES:
        return words(payload.get("destination"))
    if told.event.type not in SIGNAL_TYPES:
        return command_line(payload) or words(payload.get("path"))
    named = {name: words(payload.get(name)) for name in ("signal_name", "target_cmd", "target_pid")}
    return f"{named['signal_name']} to {named['target_cmd']} ({named['target_pid']})"


def _denied(types: frozenset[str]) -> frozenset[str]:
    def denies(name: str) -> bool:
        return outcome(Event(seq=0, time_ns=0, type=name, pid=0, payload={}, hash="")) == DENIED

    return frozenset(filter(denies, types))


_DENIALS: View[Told] = View(
    name="denials",
    meaning="One row an exec, a signal or a connection that was denied, also where somebody was "
    "asked first. " + _TRIES,
    columns=(
        *WHERE,
        Column(
            "kind",
            TEXT,
            "exec, signal or connection",
            lambda told: kind_of(told.event.type),
        ),
        PID,
        Column("who", TEXT, "what the process is called", _who),
        Column(
            "what",
            TEXT,
            "the command as a shell would quote it, the signal and its target, or the destination",
            _what,
        ),
        COUNT,
        RULE,
        REASON,
        MESSAGE,
    ),
    types=_denied(DECISION_TYPES),
)


def _time(time_ns: int | None) -> str | None:
    return None if time_ns is None else iso_time(time_ns)


PROCESSES: View[Process] = View(
    name="processes",
    meaning="One row a process that asked to run something, or whose end was seen.",
    columns=(
        SESSION,
        Column("pid", INTEGER, "numbers are used again", lambda each: each.pid),
        Column("ppid", INTEGER, "its parent", lambda each: integer(each.ppid)),
        Column("depth", INTEGER, "how deep in the tree it is", lambda each: integer(each.depth)),
        Column(
            "command",
            TEXT,
            "what it ran last; empty where nothing",
            lambda each: each.command and words(each.command),
        ),
        Column("comm", TEXT, "what the kernel last called it", lambda each: words(each.comm)),
        Column("path", TEXT, "the file that it ran last", lambda each: words(each.path)),
        Column("execs", INTEGER, "how many of its execs were let through", lambda each: each.execs),
        Column(
            "denied",
            INTEGER,
            "how many were denied; one that was tried in several folders of `PATH` is one",
            lambda each: each.denied,
        ),
        Column(
            "exit_code", INTEGER, "where it ended by itself", lambda each: integer(each.exit_code)
        ),
        Column("signal_name", TEXT, "that it died of", lambda each: words(each.signal_name)),
        Column("signal", INTEGER, "the same, as a number", lambda each: integer(each.signal)),
        Column("started", TEXT, "its first event, in UTC", lambda each: iso_time(each.started_ns)),
        Column("started_ns", INTEGER, "the same, in ns since 1970", lambda each: each.started_ns),
        Column("ended", TEXT, "its end, where one was seen", lambda each: _time(each.ended_ns)),
        Column("ended_ns", INTEGER, "the same", lambda each: each.ended_ns),
    ),
    types=PROCESS_TYPES,
)


VIEWS: dict[str, View[Any]] = {
    view.name: view
    for view in (
        SESSIONS,
        _EXECS,
        _SIGNALS,
        _CONNECTIONS,
        _OUTSIDE,
        _FILES,
        _DENIALS,
        PROCESSES,
        _EVENTS,
    )
}


# Of an event of any type: what `sigwrap export --format csv` writes.
EXPORTED: tuple[Column[Told], ...] = (
    *WHERE,
    TYPE,
    PID,
    integer_field("ppid", "its parent"),
    COMMAND,
    text_field("path", "the file"),
    text_field("signal_name", "such as SIGTERM"),
    text_field("source", "who sent it", "source_cmd"),
    text_field("target", "to whom", "target_cmd"),
    integer_field("target_pid", "the same, as a number"),
    OUTCOME,
    COUNT,
    RULE,
    REASON,
    MESSAGE,
    integer_field("exit_code", "of a process that ended by itself"),
    integer_field("exit_status", "of the session"),
)
