"""The views and their columns."""

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
from sigwrap.outcomes import ANSWER_OF, DENIED, outcome
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
    ending: Ending  # if the log has no end


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
    """Return the payload of session_ended."""
    return run.last.payload if run.last.type == "session_ended" else {}


def _state(run: Run) -> str:
    if run.last.type == "session_ended":
        return "ended"
    return run.ending.value


SESSIONS: View[Run] = View(
    name="sessions",
    meaning="One row per session.",
    columns=(
        SESSION,
        _started("name", "`--name`"),
        Column(
            "command",
            TEXT,
            "command line, quoted for a shell",
            lambda run: command_line(run.first.payload, "command"),
        ),
        Column(
            "state",
            TEXT,
            "ended, running, did not end cleanly, a checkpoint, or hooks",
            _state,
        ),
        Column(
            "exit_status",
            INTEGER,
            "exit status of sigwrap",
            lambda run: integer(_account(run).get("exit_status")),
        ),
        Column("reason", TEXT, "why it ended", lambda run: words(_account(run).get("reason"))),
        Column("started", TEXT, "time of the first event", lambda run: iso_time(run.first.time_ns)),
        Column("started_ns", INTEGER, "`started` in ns since 1970", lambda run: run.first.time_ns),
        Column(
            "last_event", TEXT, "time of the last event", lambda run: iso_time(run.last.time_ns)
        ),
        Column("last_event_ns", INTEGER, "the same, ns since 1970", lambda run: run.last.time_ns),
        Column(
            "duration_s",
            REAL,
            "seconds between them",
            lambda run: (run.last.time_ns - run.first.time_ns) / 1e9,
        ),
        Column("events", INTEGER, "number of events", lambda run: run.last.seq),
        _started("user", "name of the user"),
        _started("uid", "id of the user", integer),
        _started("host", "host name"),
        _started("cwd", "working directory"),
        _started("policy", "policy"),
        _started("policy_digest", "digest of its text and variables"),
        _started("profile", "`--profile`"),
        _started("missing", "what sigwrap could not enforce, as JSON", optional_json),
        _started("inside", "session that it joined"),
        _started("sigwrap", "version of sigwrap"),
        _started("kernel", "version of Linux"),
        _started("machine", "architecture"),
        Column("head", TEXT, "hash of the last event", lambda run: words(run.last.hash)),
    ),
    types=frozenset({"session_started"}),
)

_EVENTS: View[Told] = View(
    name="events",
    meaning="One row per event of any type.",
    columns=(
        *WHERE,
        TYPE,
        PID,
        PAYLOAD,
        Column("hash", TEXT, "hash of the chain", lambda told: words(told.event.hash)),
    ),
)

_EXECS: View[Told] = View(
    name="execs",
    meaning="One row per exec. Retries along `PATH` are one.",
    columns=(
        *WHERE,
        PID,
        integer_field("ppid", "parent"),
        integer_field("depth", "depth in the process tree"),
        COMMAND,
        OUTCOME,
        RULE,
        REASON,
        MESSAGE,
        DECISION,
        text_field("path", "file"),
        json_field("argv", "arguments as JSON"),
        text_field("cwd", "working directory"),
        text_field("comm", "process name before the exec"),
        Column(
            "replacement",
            TEXT,
            "command that ran instead",
            lambda told: command_line(told.event.payload, "replacement_argv"),
        ),
        text_field("shadows", "system command of the same name"),
        text_field("approval_id", "id of the approved request"),
        text_field("syscall", "system call"),
        integer_field("evaluation_us", "time to decide, µs"),
    ),
    types=EXEC_TYPES,
)

_SIGNALS: View[Told] = View(
    name="signals",
    meaning="One row per signal. Count with `sum(count)`.",
    columns=(
        *WHERE,
        text_field("signal_name", "such as SIGTERM"),
        integer_field("signal", "number of `signal_name`"),
        integer_field("source_pid", "sender"),
        text_field("source", "name of the sender", "source_cmd"),
        integer_field("target_pid", "target, as passed to kill(2)"),
        text_field("target", "name of the target", "target_cmd"),
        text_field("target_type", "self, child, session, system, …"),
        OUTCOME,
        COUNT,
        RULE,
        MESSAGE,
        DECISION,
        integer_field("original_signal", "the signal that the process sent"),
        text_field("syscall", "system call"),
        integer_field("evaluation_us", "time to decide, µs"),
    ),
    types=SIGNAL_TYPES,
)


_CONNECTIONS: View[Told] = View(
    name="connections",
    meaning="One row per connection, datagram or listener. Count with `sum(count)`.",
    columns=(
        *WHERE,
        PID,
        text_field("who", "name of the process", "comm"),
        text_field("direction", "connect or bind"),
        text_field("protocol", "tcp, udp, unix or other"),
        text_field("destination", "host or address with port, or `unix:` and a socket"),
        text_field("address", "address"),
        integer_field("port", "port"),
        OUTCOME,
        COUNT,
        RULE,
        MESSAGE,
        DECISION,
        text_field("syscall", "system call"),
        integer_field("evaluation_us", "time to decide, µs"),
    ),
    types=CONNECTION_TYPES,
)


_APPROVALS: View[Told] = View(
    name="approvals",
    meaning="One row per answer to an approval request. Answers from memory are not listed.",
    columns=(
        *WHERE,
        PID,
        Column(
            "answer", TEXT, "approved, denied or expired", lambda told: ANSWER_OF[told.event.type]
        ),
        text_field("what", "command line, signal and target, or destination"),
        RULE,
        text_field("by", "approver"),
        text_field("approval_id", "id of the request"),
        integer_field("waited_ms", "time until the answer, ms"),
    ),
    types=frozenset(ANSWER_OF),
)


_OUTSIDE: View[Told] = View(
    name="outside",
    meaning="One row per connection to a server outside this session, whose work is not judged.",
    columns=(
        *WHERE,
        PID,
        text_field("who", "name of the process", "comm"),
        text_field("socket", "socket of the server"),
        integer_field("peer_pid", "pid of the server"),
        text_field("peer", "name of the server", "peer_cmd"),
        Column(
            "command",
            TEXT,
            "command line of the server",
            lambda told: command_line(told.event.payload, "peer_argv"),
        ),
        COUNT,
    ),
    types=frozenset({"work_handed_outside"}),
)


_FILES: View[Told] = View(
    name="files",
    meaning="One row per change of a file that a rule audits. Count with `sum(count)`.",
    columns=(
        *WHERE,
        PID,
        text_field("who", "name of the process", "comm"),
        text_field("operation", "write, create, delete, rename, or unseen"),
        text_field("path", "file"),
        text_field("to", "new name of a rename or link"),
        COUNT,
        RULE,
        REASON,
        text_field("syscall", "system call"),
        integer_field("evaluation_us", "time to decide, µs"),
    ),
    types=frozenset({"file_audited"}),
)


_TOOL_CALLS: View[Told] = View(
    name="tool_calls",
    meaning="One row per tool call that an agent's hook judged.",
    columns=(
        *WHERE,
        text_field("agent", "such as claude-code"),
        text_field("conversation", "the agent's id of it"),
        text_field("call_id", "the agent's id of the call"),
        text_field("tool", "the agent's name of the tool"),
        text_field("what", "shell line, file or address"),
        text_field("answer", "no opinion, ask or deny"),
        RULE,
        REASON,
        text_field("cwd", "directory of the call"),
        integer_field("evaluation_us", "time to decide, µs"),
    ),
    types=frozenset({"tool_call_judged"}),
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
    meaning="One row per denied exec, signal or connection. Count with `sum(count)`.",
    columns=(
        *WHERE,
        Column(
            "kind",
            TEXT,
            "exec, signal or connection",
            lambda told: kind_of(told.event.type),
        ),
        PID,
        Column("who", TEXT, "name of the process", _who),
        Column(
            "what",
            TEXT,
            "command line, signal and target, or destination",
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
    meaning="One row per process that ran a program or ended.",
    columns=(
        SESSION,
        Column("pid", INTEGER, "may be reused", lambda each: each.pid),
        Column("ppid", INTEGER, "parent", lambda each: integer(each.ppid)),
        Column("depth", INTEGER, "depth in the process tree", lambda each: integer(each.depth)),
        Column(
            "command",
            TEXT,
            "last command line, if any",
            lambda each: each.command and words(each.command),
        ),
        Column("comm", TEXT, "last process name", lambda each: words(each.comm)),
        Column("path", TEXT, "last program file", lambda each: words(each.path)),
        Column("execs", INTEGER, "execs that were allowed", lambda each: each.execs),
        Column(
            "denied",
            INTEGER,
            "denied execs; retries along `PATH` count once",
            lambda each: each.denied,
        ),
        Column("exit_code", INTEGER, "exit status", lambda each: integer(each.exit_code)),
        Column("signal_name", TEXT, "signal that killed it", lambda each: words(each.signal_name)),
        Column("signal", INTEGER, "number of `signal_name`", lambda each: integer(each.signal)),
        Column("started", TEXT, "first event", lambda each: iso_time(each.started_ns)),
        Column("started_ns", INTEGER, "`started` in ns since 1970", lambda each: each.started_ns),
        Column("ended", TEXT, "end, if seen", lambda each: _time(each.ended_ns)),
        Column("ended_ns", INTEGER, "`ended` in ns since 1970", lambda each: each.ended_ns),
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
        _APPROVALS,
        _OUTSIDE,
        _FILES,
        _TOOL_CALLS,
        _DENIALS,
        PROCESSES,
        _EVENTS,
    )
}


# Columns of `sigwrap export --format csv`.
EXPORTED: tuple[Column[Told], ...] = (
    *WHERE,
    TYPE,
    PID,
    integer_field("ppid", "parent"),
    COMMAND,
    text_field("path", "file"),
    text_field("signal_name", "such as SIGTERM"),
    text_field("source", "sender", "source_cmd"),
    text_field("target", "name of the target", "target_cmd"),
    integer_field("target_pid", "number of `signal_name`"),
    OUTCOME,
    COUNT,
    RULE,
    REASON,
    MESSAGE,
    integer_field("exit_code", "exit status of a process"),
    integer_field("exit_status", "exit status of the session"),
)
