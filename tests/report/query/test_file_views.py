"""The views in a log's own database, as other SQLite clients read them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
import sqlite_utils

from sigwrap.log.catalog import recover, stored_files
from sigwrap.log.reader import Session
from sigwrap.log.schema import VIEWS, file_views
from sigwrap.report.check.verify import Outcome, verify_session
from sigwrap.report.query import QueryDatabase
from tests.report.conftest import Scenario, tamper

FOR_EVER = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT n FROM t"
DIFFERENT = ("events",)  # in a file, the table has this name


@pytest.fixture
def log(made: Scenario) -> Iterator[Scenario]:
    made.execute(10, 1, "npm", "run", "it's", "", "caf\udce9", "\U0001f4a1")
    made.deny(11, 10, "no-push", "git", "push", comm="sh", reason="pushing is left to people")
    made.deny(11, 10, "no-push", "git", "push", retry=True)
    made.add("exec_redirected", 12, argv=["rm"], replacement="/t", replacement_argv=["trash", "x"])
    made.add("exec_failed", 12, path="/t")
    made.add("exec_allowed", 13, argv=["y"], decision="approve", approval_id="a1")
    made.signal("SIGTERM", "sh", "sshd", "system")
    blocked = {"signal": 9, "signal_name": "SIGKILL", "source_cmd": "sh", "target_cmd": "init"}
    made.add("signal_blocked", 11, **blocked, target_pid=1, rule_name="no-kill", count=3)
    made.add("connection_denied", 11, comm="curl", destination="169.254.169.254:80", port=80)
    made.add("approval_granted", 13, approval_id="a1", what="y", by="ann", waited_ms=9)
    made.add("approval_granted", 13, approval_id="a1", what="y", remembered=True)
    made.add("work_handed_outside", 13, socket="/run/docker.sock", peer_argv=["dockerd", "-H x"])
    made.add("file_audited", 13, operation="rename", path="/a\udcff", to="/b", comm="mv")
    made.add("tool_call_judged", 0, agent="claude-code", tool="Bash", what="ls", answer="ask")
    made.exit(11, 1)
    made.exit(10, None, "SIGKILL")
    yield made


def queried(session: Session, view: str) -> list[dict[str, Any]]:
    with closing(QueryDatabase()) as database:
        database.fill(session, VIEWS.values(), lambda seen: None)
        names, rows = database.select(f"select * from {view}")
        return [dict(zip(names, row, strict=True)) for row in rows]


def read_by_a_client(path: str, view: str) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(path)) as connection:
        return list(sqlite_utils.Database(connection).query(f"select * from {view}"))


@pytest.mark.parametrize("view", [name for name in VIEWS if name not in DIFFERENT])
def test_a_client_reads_what_sigwrap_query_shows(log: Scenario, view: str) -> None:
    log.end()
    rows = queried(log.session, view)
    assert rows
    for row in rows:
        if "command" in row:  # a file's view cannot tell which characters a terminal obeys
            row["command"] = row["command"] and row["command"].replace(
                "$'caf\\xe9'", "'caf\\udce9'"
            )
    assert read_by_a_client(log.session.path, view) == rows


def test_the_chain_does_not_cover_the_views_and_stays_intact(log: Scenario) -> None:
    head = log.end()
    verification = verify_session(log.session, None)
    assert (verification.outcome, verification.head) == (Outcome.INTACT, head)


def test_a_checkpoint_and_a_recovered_log_have_them_too(log: Scenario) -> None:
    copy = log.log.copy()
    log.is_killed()
    store = log.store
    recover(store, "s1", [each for each in stored_files(store) if each.session_id == "s1"])
    for path in (copy, log.session.path):
        (row,) = read_by_a_client(path, "sessions")
        assert (row["session"], row["state"], row["events"]) == ("s1", "not ended", 17)
        assert len(read_by_a_client(path, "denials")) == 3


def test_sigwrap_query_uses_no_view_of_a_file_and_needs_none(log: Scenario) -> None:
    log.end()
    expected = {view: queried(log.session, view) for view in VIEWS}
    drop = [f"drop view {name}" for name in file_views()]
    tamper(log.session.path, *drop)
    assert {view: queried(log.session, view) for view in VIEWS} == expected
    tamper(log.session.path, *(f"create view {name} as {FOR_EVER}" for name in file_views()))
    assert {view: queried(log.session, view) for view in VIEWS} == expected
    assert verify_session(log.session, None).outcome is Outcome.INTACT
