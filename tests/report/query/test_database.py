"""SQL over sessions: what the views show, what SQL may not do, and what a mistake is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sigwrap.errors import StoreError, UsageError
from sigwrap.log.reader import Session
from sigwrap.log.schema import VIEWS
from sigwrap.report.query import QueryDatabase
from tests.report.conftest import Scenario, Scenarios, tamper

Ask = Callable[..., list[tuple[Any, ...]]]


@pytest.fixture
def database() -> Iterator[QueryDatabase]:
    made = QueryDatabase()
    yield made
    made.close()


@pytest.fixture
def ask(database: QueryDatabase) -> Ask:
    def answer(sql: str, *sessions: Session) -> list[tuple[Any, ...]]:
        views = database.views_in(sql)
        for session in sessions:
            database.fill(session, views, lambda seen: None)
        return list(database.select(sql)[1])

    return answer


@pytest.fixture
def log(made: Scenario) -> Scenario:
    """npm was let through, git push denied, a signal blocked three times."""
    made.execute(10, 1, "npm", "start")
    why = "pushing is left to people"
    made.deny(11, 10, "no-push", "git", "push", "a b", comm="sh", reason=why)
    sent = {"signal": 15, "signal_name": "SIGTERM", "source_pid": 11, "source_cmd": "sh"}
    to = {"target_pid": 99, "target_cmd": "sshd", "decision": "deny", "rule_name": "no-kill"}
    made.add("signal_blocked", 11, **sent, **to, count=3)
    made.exit(11, 1)
    made.exit(10, None, "SIGKILL")
    made.end(exit_status=137)
    return made


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        (
            "select seq, kind, pid, who, what, count, rule, reason from denials",
            [
                (3, "exec", 11, "sh", "git push 'a b'", 1, "no-push", "pushing is left to people"),
                (4, "signal", 11, "sh", "SIGTERM to sshd (99)", 3, "no-kill", None),
            ],
        ),
        (
            "select pid, command, comm, execs, denied, exit_code, signal_name, "
            "(ended_ns - started_ns) / 1000000000 from processes order by pid",
            [
                (10, "npm start", "comm", 1, 0, None, "SIGKILL", 4),
                (11, None, "comm", 0, 1, 1, None, 2),
            ],
        ),
        (
            "select session, name, command, state, exit_status, events, duration_s from sessions",
            [("s1", "demo", "npm start", "ended", 137, 7, 6.0)],
        ),
        (  # a list in an event can be taken apart
            "select each.value from execs, json_each(argv) each order by execs.seq limit 2",
            [("npm",), ("start",)],
        ),
        ("select json_extract(payload, '$.exit_status') from events where seq = 7", [(137,)]),
    ],
)
def test_a_view_has_what_the_session_did(
    ask: Ask, log: Scenario, sql: str, rows: list[tuple[Any, ...]]
) -> None:
    assert ask(sql, log.session) == rows


def test_what_was_asked_and_refused_is_denied_and_an_audited_exec_is_audited(
    ask: Ask, made: Scenario
) -> None:
    made.execute(10, 1, "true")
    made.add("exec_denied", 11, argv=["x"], decision="approve")
    made.add("exec_allowed", 12, argv=["y"], decision="approve", approval_id="a1")
    sql = "select command, outcome, decision from execs order by seq"
    assert ask(sql, made.session) == [
        ("true", "audited", "audit"),
        ("x", "denied", "approve"),
        ("y", "approved", "approve"),
    ]


def test_a_session_that_runs_is_answered_as_far_as_it_is(ask: Ask, made: Scenario) -> None:
    made.execute(10, 1, "sleep", "9")
    sql = "select state, exit_status, (select count(*) from execs), ended from sessions, processes"
    assert ask(sql, made.session) == [("running", None, 1, None)]


def test_several_sessions_are_told_apart(ask: Ask, scenario: Scenarios) -> None:
    logs = [scenario(session_id=name) for name in ("s1", "s2")]
    for log in logs:
        log.execute(10, 1, "true")
        log.end()
    sql = "select session, count(*) from execs group by session"
    assert ask(sql, *(log.session for log in logs)) == [("s1", 1), ("s2", 1)]


def test_a_pid_that_is_used_again_is_another_process(ask: Ask, made: Scenario) -> None:
    made.add("exec_allowed", 7, argv=["a"])
    made.exit(7)
    made.add("exec_allowed", 7, argv=["b"])
    sql = "select command, ended is null from processes order by started"
    assert ask(sql, made.session) == [("a", 0), ("b", 1)]


def test_an_exec_that_failed_was_none(ask: Ask, made: Scenario) -> None:
    for path in ("/a", "/b"):
        made.add("exec_allowed", 7, argv=[path[1:]], path=path)
    made.add("exec_failed", 7, path="/b")
    sql = "select command, path, execs from processes"
    assert ask(sql, made.session) == [("a", "/a", 1)]


def test_retries_along_path_are_one_denial_as_in_the_report(ask: Ask, made: Scenario) -> None:
    made.deny(7, 1, "r", "rm", "x")
    made.deny(7, 1, "r", "rm", "x", retry=True)
    made.deny(7, 1, "r", "rm", "y")
    made.exit(7, 127)
    made.deny(7, 1, "r", "rm", "y")
    sql = "select denied, (select count(*) from execs) from processes order by started"
    assert ask(sql, made.session) == [(2, 3), (1, 3)]


def test_a_process_shows_the_command_that_ran_instead(ask: Ask, made: Scenario) -> None:
    instead = {"replacement": "/t", "replacement_argv": ["trash", "x y"]}
    made.add("exec_redirected", 7, argv=["rm"], **instead)
    assert ask("select command, path from processes", made.session) == [("trash 'x y'", "/t")]


def test_any_bytes_are_valid_text_in_the_database(ask: Ask, made: Scenario) -> None:
    made.add("exec_allowed", 7, argv=["caf\udce9", "\U0001f4a1"], path="\udce9\\udc\U0001f4a1")
    sql = "select command, path, hex(path) from execs"
    ((command, path, digits),) = ask(sql, made.session)
    assert (command, path) == ("$'caf\\xe9' '\U0001f4a1'", "\\udce9\\udc\U0001f4a1")
    assert bytes.fromhex(digits).decode() == path


@pytest.mark.parametrize(
    ("sql", "views"),
    [
        ("select 1", []),
        ("select count(*) from Denials", ["denials"]),
        ("select d.rule from denials d join execs e using (seq)", ["denials", "execs"]),
        ("with x as (select * from events) select * from x", ["events"]),
        ("select count(*) from denials natural join execs", ["denials", "execs"]),
        ("select 1 from sessions union select 2 from [Processes]", ["processes", "sessions"]),
        ("select (select max(pid) from FILES y) from denials as execs", ["denials", "files"]),
        ("explain select * from execs", ["execs"]),
        ("select count(*) from LOG", ["events"]),
        ("select max(last), max(fields) from log, log_ends e", ["events", "sessions"]),
        ("select count(*) from (select 1 from log)", ["events"]),
    ],
)
def test_only_the_views_that_the_sql_reads_are_filled(
    database: QueryDatabase, sql: str, views: list[str]
) -> None:
    assert sorted(view.name for view in database.views_in(sql)) == views


@pytest.mark.parametrize(
    "sql",
    [
        "insert into execs (pid) values (1)",
        "drop table execs",
        "create temp view x as select 1",
        "attach 'x.db' as x",
        "vacuum into 'x.db'",
        "begin",
        "pragma journal_mode = wal",
        "pragma hard_heap_limit = 0",
        "select load_extension('x')",
        "with x as (select 1) delete from execs",
    ],
)
def test_sql_can_only_read(
    database: QueryDatabase, log: Scenario, tmp_path: Path, sql: str, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(UsageError, match="is not read-only"):
        database.views_in(sql)
        database.select(sql)  # VACUUM asks for leave only when it runs
    with pytest.raises(UsageError, match="is not read-only"):
        database.select(sql)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        (
            "select * from denails",
            'there is no view denails (did you mean "denials"? the views are',
        ),
        (
            "select comand from execs",
            'no column comand (did you mean "command"? execs has session,',
        ),
        ("select e.rul from execs e", 'no column e.rul (did you mean "rule"?'),
        ("select zzz from execs, events", "no column zzz (sigwrap query without SQL lists"),
        ("select 1; select 2", "more than one statement"),
        ("selec 1", 'near "selec": syntax error (the views are sessions, execs'),
        ("select ?", "SQL error"),
        ("select nosuch(1)", "no such function: nosuch"),
        ("select \0", "SQL error"),
        ("select \udcff", "SQL error"),
        ("select " + "1," * 600_000 + "1", "SQL error"),
        ("select " + "(" * 10_000, "SQL error"),
    ],
)
def test_a_mistake_says_what_would_be_right(database: QueryDatabase, sql: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        database.views_in(sql)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("-- nothing", "the SQL is not a SELECT"),
        ("reindex", "the SQL is not a SELECT"),
        ("select zeroblob(1000000000)", "too big"),
        ("select abs(-9223372036854775807 - 1)", "integer overflow"),
        ("select json('{')", "malformed JSON"),
    ],
)
def test_what_fails_when_it_is_answered_says_so(
    database: QueryDatabase, sql: str, said: str
) -> None:
    assert database.views_in(sql) == []
    with pytest.raises(UsageError, match=said):
        list(database.select(sql)[1])


def test_of_a_damaged_log_what_comes_before_is_filled_in(
    database: QueryDatabase, log: Scenario
) -> None:
    tamper(log.session.path, "update events set payload = 'x' where seq = 5")
    with pytest.raises(StoreError, match="row 5"):
        database.fill(log.session, VIEWS.values(), lambda seen: None)
    assert list(database.select("select max(seq) from events")[1]) == [(4,)]
    assert list(database.select("select count(*) from processes")[1]) == [(2,)]


def test_where_there_is_no_room_a_line_says_so(
    database: QueryDatabase, log: Scenario, tmp_path: Path
) -> None:
    database._connection.execute("pragma temp.max_page_count = 20")
    with pytest.raises(UsageError, match="temporary database: database or disk is full") as caught:
        for _ in range(1_000):
            database.fill(log.session, VIEWS.values(), lambda seen: None)
    assert "TMPDIR" in str(caught.value)
    with closing(QueryDatabase(str(tmp_path / "out.db"))) as exported:
        exported._connection.execute("pragma max_page_count = 1")
        with pytest.raises(UsageError, match="can't be written: database or disk is full"):
            exported.write_tables()
