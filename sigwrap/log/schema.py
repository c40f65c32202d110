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

from collections.abc import Iterable

from sigwrap.bare import NamedTuple
from sigwrap.events import (
    ALLOWED,
    ANSWER_OF,
    APPROVED,
    AUDITED,
    CONNECTION_TYPES,
    DENIED_TYPES,
    EXEC_TYPES,
    OUTCOME_OF,
    SIGNAL_TYPES,
)

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
    sql: str


class View(NamedTuple):
    """`types`: the only events that the view needs; empty for all."""

    name: str
    columns: tuple[Column, ...]
    source: str
    types: frozenset[str] = frozenset()

    @property
    def select(self) -> str:
        return f"SELECT {', '.join(map(_selected, self.columns))} FROM {self.source}"


def _selected(column: Column) -> str:
    return column.name if column.sql == column.name else f'{column.sql} AS "{column.name}"'


def _plain(kind: str, *names: str) -> tuple[Column, ...]:
    return tuple(Column(name, kind, name) for name in names)


def _fields(kind: str, *names: str, source: str = "fields") -> tuple[Column, ...]:
    """Return a column for each of these members of the payload."""
    return tuple(_field(kind, name, name, source) for name in names)


def _field(kind: str, name: str, key: str, source: str = "fields") -> Column:
    return Column(name, kind, f"json_extract({source}, '$.{key}')")


def _command(name: str, key: str) -> Column:
    return Column(name, TEXT, f"shell_words(json_extract(payload, '$.{key}'))")


def words_in_sql(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in sorted(names))


def _case(value: str, results: dict[str, str]) -> str:
    whens = " ".join(f"WHEN '{name}' THEN '{result}'" for name, result in results.items())
    return f"CASE {value} {whens} END"


def _time(time_ns: str) -> str:
    """Return SQL for a time in UTC with all nine digits, so that sorting the text sorts times."""
    seconds = f"strftime('%Y-%m-%dT%H:%M:%S', {time_ns} / 1000000000, 'unixepoch')"
    return f"{seconds} || printf('.%09dZ', {time_ns} % 1000000000)"


# Those that a CI job has; `labels` has the user's own too.
LABELS = ("repo", "revision", "pipeline", "run", "job")
_COMMAND_SQL = "shell_words(json_extract(payload, '$.argv'))"
_IS_SIGNAL = f"type IN ({words_in_sql(SIGNAL_TYPES)})"

_SESSION = _plain(TEXT, "session")
_EVENT = (*_SESSION, *_plain(INTEGER, "seq"), *_plain(TEXT, "time"), *_plain(INTEGER, "time_ns"))
_TYPE = _plain(TEXT, "type")
_PID = _plain(INTEGER, "pid")
_COMMAND = _command("command", "argv")
_OUTCOME = _plain(TEXT, "outcome")
_COUNT = _plain(INTEGER, "count")
_WHO = _field(TEXT, "who", "comm")
_RULE = _field(TEXT, "rule", "rule_name")
_DECIDED = (*_OUTCOME, *_COUNT, _RULE, *_fields(TEXT, "message", "decision"))
_EVALUATION = _fields(INTEGER, "evaluation_us")
_JUDGED = (*_fields(TEXT, "syscall"), *_EVALUATION)


def _view_of(types: frozenset[str], name: str, *columns: Column) -> View:
    source = f"log WHERE counted AND type IN ({words_in_sql(types)})"
    return View(name, (*_EVENT, *columns), source, types)


_FIELDS_SQL = (
    r"CASE WHEN instr(payload, '\udc') = 0 THEN payload ELSE replace(replace(replace(replace("
    r"replace(payload, '\\', char(1)), '\ud83d\udc', char(2)), '\ud', '\\ud'), "
    r"char(2), '\ud83d\udc'), char(1), '\\') END AS fields"
)
_SESSIONS = View(
    "sessions",
    (
        *_SESSION,
        *_fields(TEXT, "name"),
        _command("command", "command"),
        *_plain(TEXT, "state"),
        *_fields(INTEGER, "exit_status", source="end_fields"),
        *_fields(TEXT, "reason", source="end_fields"),
        Column("started", TEXT, _time("first_ns")),
        Column("started_ns", INTEGER, "first_ns"),
        Column("last_event", TEXT, _time("last_ns")),
        Column("last_event_ns", INTEGER, "last_ns"),
        Column("duration_s", REAL, "(last_ns - first_ns) / 1e9"),
        *_plain(INTEGER, "events"),
        *_fields(TEXT, "user"),
        *_fields(INTEGER, "uid"),
        *_fields(TEXT, "host", "cwd", "policy", "policy_digest", "profile"),
        *_fields(TEXT, "missing", source="payload"),
        *_fields(TEXT, "inside", "sigwrap", "kernel", "machine"),
        *(_field(TEXT, name, f"labels.{name}") for name in LABELS),
        *_fields(TEXT, "labels"),
        *_plain(TEXT, "head"),
    ),
    f"(SELECT *, {_FIELDS_SQL}, CASE state WHEN 'ended' THEN last END AS end_fields FROM log_ends)",
)
_EXECS = _view_of(
    EXEC_TYPES,
    "execs",
    *_PID,
    *_fields(INTEGER, "ppid", "depth"),
    _COMMAND,
    *_OUTCOME,
    _RULE,
    *_fields(TEXT, "reason", "message", "decision", "path"),
    *_fields(TEXT, "argv", source="payload"),
    *_fields(TEXT, "cwd", "comm"),
    _command("replacement", "replacement_argv"),
    *_fields(TEXT, "shadows", "approval_id"),
    *_JUDGED,
)
_SIGNALS = _view_of(
    SIGNAL_TYPES,
    "signals",
    *_fields(TEXT, "signal_name"),
    *_fields(INTEGER, "signal", "source_pid"),
    _field(TEXT, "source", "source_cmd"),
    *_fields(INTEGER, "target_pid"),
    _field(TEXT, "target", "target_cmd"),
    *_fields(TEXT, "target_type"),
    *_DECIDED,
    *_fields(INTEGER, "original_signal"),
    *_JUDGED,
)
_CONNECTIONS = _view_of(
    CONNECTION_TYPES,
    "connections",
    *_PID,
    _WHO,
    *_fields(TEXT, "direction", "protocol", "destination", "address"),
    *_fields(INTEGER, "port"),
    *_DECIDED,
    *_JUDGED,
)
_APPROVALS = _view_of(
    frozenset(ANSWER_OF),
    "approvals",
    *_PID,
    Column("answer", TEXT, _case("type", ANSWER_OF)),
    *_fields(TEXT, "what"),
    _RULE,
    *_fields(TEXT, "by"),
    Column(  # version 1 of these events called it `request_id`
        "approval_id",
        TEXT,
        "coalesce(json_extract(fields, '$.approval_id'), json_extract(fields, '$.request_id'))",
    ),
    *_fields(INTEGER, "waited_ms"),
)
_OUTSIDE = _view_of(
    frozenset({"work_handed_outside"}),
    "outside",
    *_PID,
    _WHO,
    *_fields(TEXT, "socket"),
    *_fields(INTEGER, "peer_pid"),
    _field(TEXT, "peer", "peer_cmd"),
    _command("command", "peer_argv"),
    *_COUNT,
)
_FILES = _view_of(
    frozenset({"file_audited"}),
    "files",
    *_PID,
    _WHO,
    *_fields(TEXT, "operation", "path", "to"),
    *_COUNT,
    _RULE,
    *_fields(TEXT, "reason"),
    *_JUDGED,
)
_TOOL_CALLS = _view_of(
    frozenset({"tool_call_judged"}),
    "tool_calls",
    *_fields(TEXT, "agent", "conversation", "call_id", "tool", "what", "answer"),
    _RULE,
    *_fields(TEXT, "reason", "cwd"),
    *_EVALUATION,
)
_DENIALS = _view_of(
    DENIED_TYPES,
    "denials",
    Column("kind", TEXT, "substr(type, 1, instr(type, '_') - 1)"),
    *_PID,
    Column(
        "who",
        TEXT,
        f"json_extract(fields, CASE WHEN {_IS_SIGNAL} THEN '$.source_cmd' ELSE '$.comm' END)",
    ),
    Column(
        "what",
        TEXT,
        f"CASE WHEN {_IS_SIGNAL} THEN printf('%s to %s (%s)', "
        "json_extract(fields, '$.signal_name'), json_extract(fields, '$.target_cmd'), "
        "json_extract(fields, '$.target_pid')) "
        "ELSE coalesce(json_extract(fields, '$.destination'), "
        f"nullif({_COMMAND_SQL}, ''), json_extract(fields, '$.path')) END",
    ),
    *_COUNT,
    _RULE,
    *_fields(TEXT, "reason", "message"),
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
type IN ({words_in_sql(EXEC_TYPES - DENIED_TYPES)}) AS executed,
lead(type) OVER (PARTITION BY session, pid ORDER BY seq) AS next_type,
count(CASE type WHEN 'process_exited' THEN 1 END) OVER (PARTITION BY session, pid ORDER BY seq
ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS life
FROM log WHERE type IN ({words_in_sql(_PROCESS_TYPES)})"""
_LIVES = f"""\
SELECT session, pid, min(time_ns) AS started_ns, max(CASE WHEN exit NOT NULL THEN time_ns END)
AS ended_ns, max(sum(executed) - sum(failed), 0) AS execs, coalesce(sum(denied), 0) AS denied,
{_last("CASE WHEN executed AND next_type IS NOT 'exec_failed' THEN payload END")} AS payload,
{_last("ppid")} AS ppid, {_last("depth")} AS depth, {_last("comm")} AS comm, max(exit) AS exit
FROM ({_PROCESS_EVENTS}) GROUP BY session, pid, life"""
_PROCESSES = View(
    "processes",
    (
        *_SESSION,
        *_PID,
        Column("ppid", INTEGER, "CAST(ppid AS INTEGER)"),
        Column("depth", INTEGER, "CAST(depth AS INTEGER)"),
        Column(
            "command",
            TEXT,
            "shell_words(json_extract(payload, CASE WHEN json_extract(payload, "
            "'$.replacement_argv') IS NULL THEN '$.argv' ELSE '$.replacement_argv' END))",
        ),
        *_plain(TEXT, "comm"),
        Column(
            "path",
            TEXT,
            "coalesce(json_extract(fields, '$.replacement'), json_extract(fields, '$.path'))",
        ),
        *_plain(INTEGER, "execs", "denied"),
        *_fields(INTEGER, "exit_code", source="exit"),
        *_fields(TEXT, "signal_name", source="exit"),
        *_fields(INTEGER, "signal", source="exit"),
        Column("started", TEXT, _time("started_ns")),
        *_plain(INTEGER, "started_ns"),
        Column("ended", TEXT, _time("ended_ns")),
        *_plain(INTEGER, "ended_ns"),
    ),
    f"(SELECT *, {_FIELDS_SQL} FROM ({_LIVES}))",
    _PROCESS_TYPES,
)
_EVENTS = View(
    "events",
    (
        *_EVENT,
        *_TYPE,
        *_PID,
        *_plain(TEXT, "payload", "hash"),
    ),
    "log",
)

VIEWS = {
    view.name: view
    for view in (
        *(_SESSIONS, _EXECS, _SIGNALS, _CONNECTIONS, _APPROVALS, _OUTSIDE),
        *(_FILES, _TOOL_CALLS, _DENIALS, _PROCESSES, _EVENTS),
    )
}

# The columns of `sigwrap export --format csv`.
EXPORTED = View(
    "exported",
    (
        *_EVENT,
        *_TYPE,
        *_PID,
        *_fields(INTEGER, "ppid"),
        _COMMAND,
        *_fields(TEXT, "path", "signal_name"),
        _field(TEXT, "source", "source_cmd"),
        _field(TEXT, "target", "target_cmd"),
        *_fields(INTEGER, "target_pid"),
        *_OUTCOME,
        *_COUNT,
        _RULE,
        *_fields(TEXT, "reason", "message"),
        *_fields(INTEGER, "exit_code", "exit_status"),
    ),
    "log",
)

# As in events.py.
_ALLOWED = f"type IN ({words_in_sql(tuple(k for k, v in OUTCOME_OF.items() if v == ALLOWED))})"
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
