"""sigwrap sessions, rm, prune and recover, as one would use them."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sigwrap.log.catalog import list_sessions, open_session
from sigwrap.log.writer import SessionLog
from sigwrap.report.check.verify import Outcome, verify_session
from tests.support.harness import Running, Sigwrap
from tests.support.waiting import await_that

DAY_NS = 86_400 * 10**9


def record(store: Path, session_id: str, days_ago: int = 0, name: str = "") -> None:
    start_ns = time.time_ns() - days_ago * DAY_NS
    log = SessionLog.create(str(store), session_id)
    started = {"session_id": session_id, "name": name, "command": ["npm", "start"]}
    log.append("session_started", 1, started, start_ns)
    ended = {"exit_status": 0, "reason": "exited", "counts": {}, "head": log.head}
    log.append("session_ended", 1, ended, start_ns + 1)
    log.close()


def ids(sigwrap: Sigwrap) -> list[str]:
    return [file.id for file in list_sessions(str(sigwrap.store))]


@pytest.fixture
def running(sigwrap: Sigwrap) -> Iterator[Running]:
    process, _ = sigwrap.start_ready("--name", "runs", "--", "sh", "-c", "echo ready; read x")
    yield process


@pytest.fixture
def killed(sigwrap: Sigwrap, running: Running) -> str:
    """Return the id of a session whose supervisor was killed; its log is in two files."""
    (session,) = list_sessions(str(sigwrap.store))
    first = open_session(str(sigwrap.store), "").first()
    assert first is not None
    os.kill(first.pid, signal.SIGKILL)
    running.wait()
    await_that(lambda: not open_session(str(sigwrap.store), "").running)
    return session.id


@pytest.mark.promise("sessions")
def test_rm_removes_what_is_named_and_says_what_is_free(sigwrap: Sigwrap) -> None:
    for session_id in ("20260101-a1", "20260101-b2", "20260101-c3"):
        record(sigwrap.store, session_id, name="nightly")
    done = sigwrap.run("sessions", "rm", "a1", "20260101-b2")
    assert (done.returncode, done.stderr) == (0, b"")
    assert re.match(rb"removed 20260101-a1  \d+ s old  .*  \(nightly\) ", done.stdout)
    assert done.stdout.splitlines()[-1] == b"2 sessions removed, 64K freed"
    assert ids(sigwrap) == ["20260101-c3"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("s1", "unknown"), "no session is called 'unknown'"),
        (("",), "the session can't be empty"),
        (("1",), "'1' is too short for s1 (give 2 characters of the id)"),
        (("./s1.db",), "./s1.db is a file (give the session's id or name)"),
        (("twice",), "2 sessions are called 'twice' (give an id: s1, s2)"),
    ],
)
def test_rm_removes_nothing_where_it_isn_t_clear(
    sigwrap: Sigwrap, words: tuple[str, ...], said: str
) -> None:
    for session_id in ("s1", "s2"):
        record(sigwrap.store, session_id, name="twice")
    done = sigwrap.run("sessions", "rm", *words)
    assert done.returncode == 125
    assert said in done.stderr.decode()
    assert ids(sigwrap) == ["s1", "s2"]


def test_one_that_runs_stays(sigwrap: Sigwrap, running: Running) -> None:
    record(sigwrap.store, "s1", days_ago=9)
    done = sigwrap.run("sessions", "rm", "runs", "s1")
    assert done.returncode == 125
    assert b"is running (to end it: sigwrap stop" in done.stderr
    assert done.stdout.splitlines()[-1].startswith(b"1 session removed")
    pruned = sigwrap.run("sessions", "prune", "--keep", "0")
    assert pruned.stdout == b"0 sessions removed, 0B freed\n"
    assert sigwrap.run("sessions", "recover").stdout == b"nothing to recover\n"
    done = sigwrap.run("sessions", "recover", "runs")
    assert done.returncode == 125 and b"is running" in done.stderr
    (left,) = list_sessions(str(sigwrap.store))
    assert left.running
    running.say(b"\n")
    assert running.wait() == 0


def test_inside_a_session_nothing_is_removed_or_recovered(sigwrap: Sigwrap) -> None:
    record(sigwrap.store, "s1")
    for line in (("rm", "s1"), ("prune", "--keep", "0"), ("recover",)):
        done = sigwrap.run("--", *map(str, sigwrap.line("sessions", *line)))
        assert done.returncode == 125
        assert b"(use a shell outside the session)" in done.stderr
    assert "s1" in ids(sigwrap)


def test_prune_removes_the_old_ones(sigwrap: Sigwrap) -> None:
    for days in (1, 20, 40, 60):
        record(sigwrap.store, f"d{days}", days_ago=days)
    dry = sigwrap.run("sessions", "prune", "--older-than", "30d", "--dry-run")
    assert [line.split()[2] for line in dry.stdout.splitlines()[:-1]] == [b"d60", b"d40"]
    assert dry.stdout.splitlines()[-1] == b"2 sessions would be removed, 64K would be freed"
    assert ids(sigwrap) == ["d60", "d40", "d20", "d1"]
    assert sigwrap.run("sessions", "prune", "--older-than", "30d", "--keep", "3").returncode == 0
    assert ids(sigwrap) == ["d40", "d20", "d1"]
    assert sigwrap.run("sessions", "prune", "--max-size", "63K").returncode == 0
    assert ids(sigwrap) == ["d1"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            (),
            "one of --older-than, --keep and --max-size is needed (such as sigwrap sessions prune",
        ),
        (
            ("--older-than", "soon"),
            "--older-than soon: not a duration (such as 45s, 10m, 1h30m, 2d or 2w)",
        ),
        (
            ("--keep", "-1"),
            "--keep: -1 is less than 0 (see",
        ),
    ],
)
def test_prune_says_what_it_needs(sigwrap: Sigwrap, words: tuple[str, ...], said: str) -> None:
    record(sigwrap.store, "s1")
    done = sigwrap.run("sessions", "prune", *words)
    assert (done.returncode, done.stdout) == (125, b"")
    assert said in done.stderr.decode()


def test_prune_removes_the_sockets_of_killed_sessions(sigwrap: Sigwrap, killed: str) -> None:
    sockets = [sigwrap.store / "control" / f"{killed}.{kind}" for kind in ("sock", "calls")]
    assert all(each.is_socket() for each in sockets)
    dry = sigwrap.run("sessions", "prune", "--keep", "9", "--dry-run")
    assert b"2 sockets of killed sessions would be removed from" in dry.stdout
    assert all(each.exists() for each in sockets)
    sigwrap.run("sessions", "prune", "--keep", "9")
    assert not any(each.exists() for each in sockets)
    assert ids(sigwrap) == [killed]


def test_recover_puts_a_killed_one_into_one_file(sigwrap: Sigwrap, killed: str) -> None:
    sessions = sigwrap.store / "sessions"
    before = verify_session(open_session(str(sigwrap.store), ""), None)
    assert json.loads(sigwrap.run("sessions", "--json").stdout)["sessions"][0]["recoverable"]
    done = sigwrap.run("sessions", "recover")
    database = sessions / f"{killed}.db"
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == f"{killed}: {before.events} events, now in {database}\n"
    assert os.listdir(sessions) == [database.name]
    assert os.listdir(sigwrap.store / "control") == []
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("SELECT max(seq) FROM events").fetchone() == (before.events,)
    assert verify_session(open_session(str(sigwrap.store), ""), None) == before
    assert before.outcome is Outcome.INTACT and not before.ended
    for command in ("sessions", "report"):
        assert b"did not end cleanly" in sigwrap.run(command).stdout.lower()
    assert b"its end was not recorded" in sigwrap.run("why").stdout
    assert b"the session did not end cleanly" in sigwrap.run("verify").stdout
    assert sigwrap.run("sessions", "recover").stdout == b"nothing to recover\n"
    assert b"already in one file" in sigwrap.run("sessions", "recover", killed).stdout
