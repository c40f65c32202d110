"""The database's SQL: one append-only table, and views that show its events as tables.

No index but the primary key: appending costs the same for the millionth event as for the first.

Every database has the views, so that sqlite-utils or Datasette can read a log. sigwrap never trusts
those in a file: `sigwrap query` makes them again in a database of its own. In both they read

log       every event, with its session, its time as text, its outcome and count. `payload` is as
          written. In `fields`, bytes that are not UTF-8 are text such as \\udcff, because clients
          reject them. `counted` is 0 for a repetition that is no action of its own
log_ends  the first and the last event of each session

and call shell_words(), which `sigwrap query` defines and a file spells out in SQL.
"""

from __future__ import annotations

from sigwrap.bare import NamedTuple
from sigwrap.events import CONNECTION_TYPES, DENIED_TYPES, EXEC_TYPES, SIGNAL_TYPES
from sigwrap.outcomes import ALLOWED, ANSWER_OF, APPROVED, AUDITED, OUTCOME_OF

APPLICATION_ID = 0x53675772  # "SgWr"; `file` and other tools can tell the format by it
SCHEMA_VERSION = 1

EVENTS_TABLE = """\
CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    time_ns INTEGER NOT NULL,
    type TEXT NOT NULL,
    pid INTEGER NOT NULL,
    payload TEXT NOT NULL,
    hash TEXT NOT NULL
)"""
_TRIGGERS = """\
CREATE TRIGGER events_are_not_changed BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
CREATE TRIGGER events_are_not_deleted BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'the log is append-only'); END;
"""
TABLE_SCRIPT = (
    f"BEGIN; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION}; "
    f"{EVENTS_TABLE}; {_TRIGGERS} COMMIT;"
)
TABLE_SCRIPT_OBJECTS = 3  # the table and its triggers


TEXT, INTEGER, REAL = "TEXT", "INTEGER", "REAL"


class Column(NamedTuple):
    name: str
    type: str
    meaning: str
    sql: str


class View(NamedTuple):
    """`types`: the only events that the view needs; empty for all."""

    name: str
    meaning: str
    columns: tuple[Column, ...]
    source: str
    types: frozenset[str] = frozenset()

    @property
    def select(self) -> str:
        return f"SELECT {', '.join(map(_selected, self.columns))} FROM {self.source}"


def _selected(column: Column) -> str:
    return column.name if column.sql == column.name else f'{column.sql} AS "{column.name}"'


def _field(kind: str, name: str, meaning: str, key: str = "", source: str = "fields") -> Column:
    return Column(name, kind, meaning, f"json_extract({source}, '$.{key or name}')")


def _text(name: str, meaning: str, key: str = "") -> Column:
    return _field(TEXT, name, meaning, key)


def _integer(name: str, meaning: str, key: str = "") -> Column:
    return _field(INTEGER, name, meaning, key)


def _json(name: str, meaning: str) -> Column:
    return _field(TEXT, name, meaning, source="payload")


def _plain(kind: str, name: str, meaning: str) -> Column:
    return Column(name, kind, meaning, name)


def _command(name: str, meaning: str, key: str) -> Column:
    return Column(name, TEXT, meaning, f"shell_words(json_extract(payload, '$.{key}'))")


def _words(names: frozenset[str] | tuple[str, ...]) -> str:
    return ", ".join(f"'{name}'" for name in sorted(names))


def _case(value: str, results: dict[str, str]) -> str:
    whens = " ".join(f"WHEN '{name}' THEN '{result}'" for name, result in results.items())
    return f"CASE {value} {whens} END"


def _time(time_ns: str) -> str:
    """Return SQL for a time in UTC with all nine digits, so that sorting the text sorts times."""
    seconds = f"strftime('%Y-%m-%dT%H:%M:%S', {time_ns} / 1000000000, 'unixepoch')"
    return f"{seconds} || printf('.%09dZ', {time_ns} % 1000000000)"


_COMMAND_SQL = "shell_words(json_extract(payload, '$.argv'))"
_IS_SIGNAL = f"type IN ({_words(SIGNAL_TYPES)})"

_SESSION = _plain(TEXT, "session", "session id")
_EVENT = (
    _SESSION,
    _plain(INTEGER, "seq", "number of the event"),
    _plain(TEXT, "time", "when it happened"),
    _plain(INTEGER, "time_ns", "the same, ns since 1970"),
)
_TYPE = _plain(TEXT, "type", "see [events](events.md)")
_PID = _plain(INTEGER, "pid", "pid of the process")
_COMMAND = _command("command", "command line, quoted for a shell", "argv")
_OUTCOME = _plain(TEXT, "outcome", "denied, redirected, absorbed, approved, audited or allowed")
_COUNT = _plain(INTEGER, "count", "repetitions within a second are one event")
_WHO = _text("who", "name of the process", "comm")
_RULE = _text("rule", "name of the rule that decided", "rule_name")
_REASON = _text("reason", "why, such as the rule's file and line")
_MESSAGE = _text("message", "the rule's message")
_DECISION = _text("decision", "the decision in the rule")
_DECIDED = (_OUTCOME, _COUNT, _RULE, _MESSAGE, _DECISION)
_EVALUATION = _integer("evaluation_us", "time to decide, µs")
_JUDGED = (_text("syscall", "system call"), _EVALUATION)


def _view_of(types: frozenset[str], name: str, meaning: str, *columns: Column) -> View:
    source = f"log WHERE counted AND type IN ({_words(types)})"
    return View(name, meaning, (*_EVENT, *columns), source, types)


_FIELDS_SQL = (
    r"CASE WHEN instr(payload, '\udc') = 0 THEN payload ELSE replace(replace(replace(replace("
    r"replace(payload, '\\', char(1)), '\ud83d\udc', char(2)), '\ud', '\\ud'), "
    r"char(2), '\ud83d\udc'), char(1), '\\') END AS fields"
)
_SESSIONS = View(
    "sessions",
    "One row per session.",
    (
        _SESSION,
        _text("name", "`--name`"),
        _command("command", "command line, quoted for a shell", "command"),
        _plain(TEXT, "state", "ended, running, did not end cleanly, a checkpoint, or hooks"),
        _field(INTEGER, "exit_status", "exit status of sigwrap", source="end_fields"),
        _field(TEXT, "reason", "why it ended", source="end_fields"),
        Column("started", TEXT, "time of the first event", _time("first_ns")),
        Column("started_ns", INTEGER, "`started` in ns since 1970", "first_ns"),
        Column("last_event", TEXT, "time of the last event", _time("last_ns")),
        Column("last_event_ns", INTEGER, "the same, ns since 1970", "last_ns"),
        Column("duration_s", REAL, "seconds between them", "(last_ns - first_ns) / 1e9"),
        _plain(INTEGER, "events", "number of events"),
        _text("user", "name of the user"),
        _integer("uid", "id of the user"),
        _text("host", "host name"),
        _text("cwd", "working directory"),
        _text("policy", "policy"),
        _text("policy_digest", "digest of its text and variables"),
        _text("profile", "`--profile`"),
        _json("missing", "what sigwrap could not enforce, as JSON"),
        _text("inside", "session that it joined"),
        _text("sigwrap", "version of sigwrap"),
        _text("kernel", "version of Linux"),
        _text("machine", "architecture"),
        _plain(TEXT, "head", "hash of the last event"),
    ),
    f"(SELECT *, {_FIELDS_SQL}, CASE state WHEN 'ended' THEN last END AS end_fields FROM log_ends)",
)
_EXECS = _view_of(
    EXEC_TYPES,
    "execs",
    "One row per exec. Retries along `PATH` are one.",
    _PID,
    _integer("ppid", "parent"),
    _integer("depth", "depth in the process tree"),
    _COMMAND,
    _OUTCOME,
    _RULE,
    _REASON,
    _MESSAGE,
    _DECISION,
    _text("path", "file"),
    _json("argv", "arguments as JSON"),
    _text("cwd", "working directory"),
    _text("comm", "process name before the exec"),
    _command("replacement", "command that ran instead", "replacement_argv"),
    _text("shadows", "system command of the same name"),
    _text("approval_id", "id of the approved request"),
    *_JUDGED,
)
_SIGNALS = _view_of(
    SIGNAL_TYPES,
    "signals",
    "One row per signal. Count with `sum(count)`.",
    _text("signal_name", "such as SIGTERM"),
    _integer("signal", "number of `signal_name`"),
    _integer("source_pid", "sender"),
    _text("source", "name of the sender", "source_cmd"),
    _integer("target_pid", "target, as passed to kill(2)"),
    _text("target", "name of the target", "target_cmd"),
    _text("target_type", "self, child, session, system, …"),
    *_DECIDED,
    _integer("original_signal", "the signal that the process sent"),
    *_JUDGED,
)
_CONNECTIONS = _view_of(
    CONNECTION_TYPES,
    "connections",
    "One row per connection, datagram or listener. Count with `sum(count)`.",
    _PID,
    _WHO,
    _text("direction", "connect or bind"),
    _text("protocol", "tcp, udp, unix or other"),
    _text("destination", "host or address with port, or `unix:` and a socket"),
    _text("address", "address"),
    _integer("port", "port"),
    *_DECIDED,
    *_JUDGED,
)
_APPROVALS = _view_of(
    frozenset(ANSWER_OF),
    "approvals",
    "One row per answer to an approval request. Answers from memory are not listed.",
    _PID,
    Column("answer", TEXT, "approved, denied or expired", _case("type", ANSWER_OF)),
    _text("what", "command line, signal and target, or destination"),
    _RULE,
    _text("by", "approver"),
    Column(  # version 1 of these events called it `request_id`
        "approval_id",
        TEXT,
        "id of the request",
        "coalesce(json_extract(fields, '$.approval_id'), json_extract(fields, '$.request_id'))",
    ),
    _integer("waited_ms", "time until the answer, ms"),
)
_OUTSIDE = _view_of(
    frozenset({"work_handed_outside"}),
    "outside",
    "One row per connection to a server outside this session, whose work is not judged.",
    _PID,
    _WHO,
    _text("socket", "socket of the server"),
    _integer("peer_pid", "pid of the server"),
    _text("peer", "name of the server", "peer_cmd"),
    _command("command", "command line of the server", "peer_argv"),
    _COUNT,
)
_FILES = _view_of(
    frozenset({"file_audited"}),
    "files",
    "One row per change of a file that a rule audits. Count with `sum(count)`.",
    _PID,
    _WHO,
    _text("operation", "write, create, delete, rename, or unseen"),
    _text("path", "file"),
    _text("to", "new name of a rename or link"),
    _COUNT,
    _RULE,
    _REASON,
    *_JUDGED,
)
_TOOL_CALLS = _view_of(
    frozenset({"tool_call_judged"}),
    "tool_calls",
    "One row per tool call that an agent's hook judged.",
    _text("agent", "such as claude-code"),
    _text("conversation", "the agent's id of it"),
    _text("call_id", "the agent's id of the call"),
    _text("tool", "the agent's name of the tool"),
    _text("what", "shell line, file or address"),
    _text("answer", "no opinion, ask or deny"),
    _RULE,
    _REASON,
    _text("cwd", "directory of the call"),
    _EVALUATION,
)
_DENIALS = _view_of(
    DENIED_TYPES,
    "denials",
    "One row per denied exec, signal or connection. Count with `sum(count)`.",
    Column("kind", TEXT, "exec, signal or connection", "substr(type, 1, instr(type, '_') - 1)"),
    _PID,
    Column(
        "who",
        TEXT,
        "name of the process",
        f"json_extract(fields, CASE WHEN {_IS_SIGNAL} THEN '$.source_cmd' ELSE '$.comm' END)",
    ),
    Column(
        "what",
        TEXT,
        "command line, signal and target, or destination",
        f"CASE WHEN {_IS_SIGNAL} THEN printf('%s to %s (%s)', "
        "json_extract(fields, '$.signal_name'), json_extract(fields, '$.target_cmd'), "
        "json_extract(fields, '$.target_pid')) "
        "ELSE coalesce(json_extract(fields, '$.destination'), "
        f"nullif({_COMMAND_SQL}, ''), json_extract(fields, '$.path')) END",
    ),
    _COUNT,
    _RULE,
    _REASON,
    _MESSAGE,
)


def _last(value: str) -> str:
    """Return SQL for the last value in a group that is not NULL, as text."""
    return f"substr(max(printf('%019d', seq) || {value}), 20)"


_PROCESS_TYPES = EXEC_TYPES | {"exec_failed", "process_exited"}
# A pid can be reused: a process ends with its process_exited. An exec that failed leaves the
# command as it was; its exec_failed is the process's next event.
_PROCESS_EVENTS = f"""\
SELECT session, seq, time_ns, pid, payload, type = 'exec_failed' AS failed,
json_extract(fields, '$.ppid') AS ppid, json_extract(fields, '$.depth') AS depth,
json_extract(fields, '$.comm') AS comm, CASE type WHEN 'process_exited' THEN payload END AS exit,
CASE type WHEN 'exec_denied' THEN counted * count END AS denied,
type IN ({_words(EXEC_TYPES - DENIED_TYPES)}) AS executed,
lead(type) OVER (PARTITION BY session, pid ORDER BY seq) AS next_type,
count(CASE type WHEN 'process_exited' THEN 1 END) OVER (PARTITION BY session, pid ORDER BY seq
ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS life
FROM log WHERE type IN ({_words(_PROCESS_TYPES)})"""
_LIVES = f"""\
SELECT session, pid, min(time_ns) AS started_ns, max(CASE WHEN exit NOT NULL THEN time_ns END)
AS ended_ns, max(sum(executed) - sum(failed), 0) AS execs, coalesce(sum(denied), 0) AS denied,
{_last("CASE WHEN executed AND next_type IS NOT 'exec_failed' THEN payload END")} AS payload,
{_last("ppid")} AS ppid, {_last("depth")} AS depth, {_last("comm")} AS comm, max(exit) AS exit
FROM ({_PROCESS_EVENTS}) GROUP BY session, pid, life"""
_PROCESSES = View(
    "processes",
    "One row per process that ran a program or ended.",
    (
        _SESSION,
        _plain(INTEGER, "pid", "may be reused"),
        Column("ppid", INTEGER, "parent", "CAST(ppid AS INTEGER)"),
        Column("depth", INTEGER, "depth in the process tree", "CAST(depth AS INTEGER)"),
        Column(
            "command",
            TEXT,
            "last command line, if any",
            "shell_words(json_extract(payload, CASE WHEN json_extract(payload, "
            "'$.replacement_argv') IS NULL THEN '$.argv' ELSE '$.replacement_argv' END))",
        ),
        _plain(TEXT, "comm", "last process name"),
        Column(
            "path",
            TEXT,
            "last program file",
            "coalesce(json_extract(fields, '$.replacement'), json_extract(fields, '$.path'))",
        ),
        _plain(INTEGER, "execs", "execs that were allowed"),
        _plain(INTEGER, "denied", "denied execs; retries along `PATH` count once"),
        _field(INTEGER, "exit_code", "exit status", source="exit"),
        _field(TEXT, "signal_name", "signal that killed it", source="exit"),
        _field(INTEGER, "signal", "number of `signal_name`", source="exit"),
        Column("started", TEXT, "first event", _time("started_ns")),
        _plain(INTEGER, "started_ns", "`started` in ns since 1970"),
        Column("ended", TEXT, "end, if seen", _time("ended_ns")),
        _plain(INTEGER, "ended_ns", "`ended` in ns since 1970"),
    ),
    f"(SELECT *, {_FIELDS_SQL} FROM ({_LIVES}))",
    _PROCESS_TYPES,
)
_EVENTS = View(
    "events",
    "One row per event of any type.",
    (
        *_EVENT,
        _TYPE,
        _PID,
        Column(
            "payload",
            TEXT,
            "all other fields as JSON, for `json_extract(payload, '$.reason')`",
            "json_remove(payload, '$.v')",
        ),
        _plain(TEXT, "hash", "hash of the chain"),
    ),
    "log",
)

VIEWS = {
    view.name: view
    for view in (
        _SESSIONS,
        _EXECS,
        _SIGNALS,
        _CONNECTIONS,
        _APPROVALS,
        _OUTSIDE,
        _FILES,
        _TOOL_CALLS,
        _DENIALS,
        _PROCESSES,
        _EVENTS,
    )
}

# The columns of `sigwrap export --format csv`.
EXPORTED = View(
    "exported",
    "One row per event, with the fields that many types have.",
    (
        *_EVENT,
        _TYPE,
        _PID,
        _integer("ppid", "parent"),
        _COMMAND,
        _text("path", "file"),
        _text("signal_name", "such as SIGTERM"),
        _text("source", "sender", "source_cmd"),
        _text("target", "name of the target", "target_cmd"),
        _integer("target_pid", "target, as passed to kill(2)"),
        _OUTCOME,
        _COUNT,
        _RULE,
        _REASON,
        _MESSAGE,
        _integer("exit_code", "exit status of a process"),
        _integer("exit_status", "exit status of the session"),
    ),
    "log",
)

# As in outcomes.py.
_ALLOWED = f"type IN ({_words(tuple(k for k, v in OUTCOME_OF.items() if v == ALLOWED))})"
_OUTCOME_SQL = (
    f"CASE WHEN {_ALLOWED} AND json_extract(fields, '$.decision') = 'audit' THEN '{AUDITED}' "
    f"WHEN {_ALLOWED} AND json_extract(fields, '$.approval_id') != '' THEN '{APPROVED}' "
    f"ELSE {_case('type', OUTCOME_OF)} END"
)
_COUNT_SQL = "max(coalesce(json_extract(fields, '$.count'), 1), 1)"
_COUNTED_SQL = (
    "json_extract(fields, '$.retry') IS NOT 1 AND json_extract(fields, '$.remembered') IS NOT 1 "
    "AND (json_extract(fields, '$.stub') IS NOT 1 OR json_extract(fields, '$.approval_id') != '')"
)


def log_view(source: str) -> str:
    """Return the SELECT of `log` from a table of events that has their session."""
    return (
        f"SELECT session, seq, {_time('time_ns')} AS time, time_ns, type, pid, payload, fields, "
        f"{_OUTCOME_SQL} AS outcome, {_COUNT_SQL} AS count, {_COUNTED_SQL} AS counted, hash "
        f"FROM (SELECT *, {_FIELDS_SQL} FROM {source})"
    )


_FILE_LOG = log_view(
    "(SELECT (SELECT json_extract(payload, '$.session_id') FROM events WHERE seq = 1) AS session, "
    "* FROM events)"
)
_FILE_LOG_ENDS = (
    "SELECT first.session, CASE last.type WHEN 'session_ended' THEN 'ended' ELSE 'not ended' END "
    "AS state, first.payload, last.fields AS last, first.time_ns AS first_ns, "
    "last.time_ns AS last_ns, last.seq AS events, last.hash AS head "
    "FROM (SELECT * FROM log ORDER BY seq LIMIT 1) AS first, "
    "(SELECT * FROM log ORDER BY seq DESC LIMIT 1) AS last"
)
# Like shell_words(), but characters that a terminal would obey stay as they are.
_SAFE = "[^A-Za-z0-9_@%+=:,./~^-]"
_FILE_SHELL_WORDS = (
    f"(SELECT group_concat(CASE WHEN value = '' OR value GLOB '*{_SAFE}*' THEN "
    r"'''' || replace(value, '''', '''\''''') || '''' ELSE value END, ' ') FROM json_each(fields,"
)


def file_views() -> dict[str, str]:
    """Return the SELECT of each view in a log's own database, where `events` is the table."""
    views = {"log": _FILE_LOG, "log_ends": _FILE_LOG_ENDS}
    for view in VIEWS.values():
        if view.name != "events":
            views[view.name] = view.select.replace(
                "shell_words(json_extract(payload,", _FILE_SHELL_WORDS
            )
    return views


def views_script() -> str:
    """Return SQL that adds the views, without parsing them, which takes 1 ms."""
    texts = {name: f"CREATE VIEW {name} AS {sql}" for name, sql in file_views().items()}
    rows = (f"('view', '{name}', '{name}', 0, {_quoted(text)})" for name, text in texts.items())
    return (
        "PRAGMA writable_schema = ON; BEGIN IMMEDIATE; "
        "DELETE FROM sqlite_master WHERE type = 'view'; "
        f"INSERT INTO sqlite_master VALUES {', '.join(rows)}; COMMIT; "
        "PRAGMA writable_schema = OFF;"
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
