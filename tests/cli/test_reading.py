from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sigwrap.store.writer import SessionLog

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def head(store: Path) -> str:
    """Two sessions: "older" was killed, "newer" ended; the head of newer."""
    older = SessionLog.create(str(store), "older")
    older.append("session_started", 1, {"session_id": "older", "command": ["sleep", "9"]}, 1)
    os.close(older._journal._fd)
    older._database.close()
    newer = SessionLog.create(str(store), "newer")
    payload = {"session_id": "newer", "name": "demo", "command": ["npm", "start"]}
    newer.append("session_started", 1, payload, 1_000_000_001)
    for seq in range(2, 402):
        exec_payload = {"path": "/bin/ls", "argv": ["ls", str(seq)], "ppid": 1, "decision": "audit"}
        newer.append("exec_audited", seq, exec_payload, 1_000_000_001 + seq * 1_000)
    ended = {
        "exit_status": 3,
        "reason": "exited",
        "duration_ns": 5,
        "counts": {"session_started": 1, "exec_audited": 400},
        "head": newer.head,
    }
    newer.append("session_ended", 1, ended, 1_000_900_000)
    newer.close()
    return newer.head


@pytest.fixture
def run(store: Path, head: str) -> Run:
    def execute(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "sigwrap", *arguments],
            capture_output=True,
            text=True,
            env=environment(SIGWRAP_STORE=str(store), **variables),
        )

    return execute


def environment(**variables: str) -> dict[str, str]:
    kept = {"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ["PATH"]}
    return {**kept, **variables}


def test_sessions_lists_them_the_latest_last(run: Run) -> None:
    lines = run("sessions").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["older", "newer"]
    assert "did not end cleanly" in lines[0] and "exit status 3" in lines[1]
    document = json.loads(run("sessions", "--json").stdout)
    assert [file["session_id"] for file in document["sessions"]] == ["older", "newer"]


def test_report_is_of_the_latest_session_unless_one_is_named(run: Run, tmp_path: Path) -> None:
    assert run("report").stdout.startswith("exited: exit status 3 after")
    assert run("report", "demo").stdout == run("report").stdout
    assert run("report", "old").stdout.startswith("did not end cleanly")
    assert json.loads(run("report", "--json").stdout)["exit_status"] == 3
    assert run("report", "--format", "json").stdout == run("report", "--json").stdout
    target = tmp_path / "report.txt"
    written = run("report", "-o", str(target))
    assert (written.returncode, written.stdout) == (0, "")
    assert target.read_text() == run("report").stdout


def test_output_into_a_pipe_has_no_colour_and_no_wrapping(run: Run) -> None:
    for command in ("report", "verify", "sessions"):
        assert "\x1b" not in run(command, COLUMNS="20", TERM="xterm-256color").stdout
    lines = run("replay", "--instant", COLUMNS="20").stdout.splitlines()
    assert len(lines) == 402


def test_replay_shows_every_event_or_the_state_at_one(run: Run) -> None:
    lines = run("replay", "--instant").stdout.splitlines()
    assert [int(line.split()[0]) for line in lines] == list(range(1, 403))
    assert run("replay", "--speed", "1000000").stdout.splitlines() == lines
    first = run("replay", "--instant", "--json").stdout.splitlines()[0]
    assert json.loads(first)["payload"]["name"] == "demo"
    state = run("replay", "--until", "5").stdout
    assert state.startswith("state after event 5")
    assert "Processes (4, 4 running)" in state
    assert json.loads(run("replay", "--until", "5", "--json").stdout)["events"] == 5


def test_what_was_not_recorded_is_said_and_no_empty_stream(run: Run) -> None:
    done = run("replay", "--instant", "--recorded", "stdout")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("sigwrap: no stdout was recorded (")


def test_verify_proves_the_log_or_fails_with_the_row(run: Run, store: Path, head: str) -> None:
    intact = run("verify", "--head", head)
    assert (intact.returncode, intact.stdout.splitlines()[0]) == (
        0,
        "newer: intact, 402 events, checked without a key",
    )
    other = run("verify", "--head", "0" * 64)
    assert other.returncode == 1
    assert "NOT INTACT" in other.stdout
    for no_head in ("", "abc", head.upper() + "0"):
        refused = run("verify", "--head", no_head)
        assert refused.returncode and not refused.stdout
        assert f"--head {no_head!r}: not a head" in refused.stderr
    database = sqlite3.connect(store / "sessions" / "newer.db")
    database.execute("DROP TRIGGER events_are_not_deleted")
    database.execute("DELETE FROM events WHERE seq = 7")
    database.commit()
    database.close()
    broken = run("verify")
    assert broken.returncode == 1
    assert "NOT INTACT: row 8: it follows row 6" in broken.stdout
    by_json = run("verify", str(store / "sessions" / "newer.db"), "--json")
    assert by_json.returncode == 1
    assert json.loads(by_json.stdout)["row"] == 8
    assert "NOT INTACT" in run("report").stdout
    for made_of_it in (
        ("replay", "--policy", "ci"),
        ("policy", "suggest", "newer", "--extends", "ci"),
        ("policy", "generate", "newer"),
    ):
        (line,) = run(*made_of_it).stderr.splitlines()[:1]
        assert line.startswith("sigwrap: newer: NOT INTACT: row 8: it follows row 6"), made_of_it


def test_verify_without_the_right_key_fails(run: Run) -> None:
    refused = run("verify", SIGWRAP_KEY="secret")
    assert refused.returncode == 1
    assert "the log says it has no key" in refused.stdout


def test_store_is_an_option_of_each_command(run: Run, tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere")
    for command in ("report", "replay", "verify"):
        failed = run(command, "--store", nowhere)
        assert failed.returncode != 0
        assert f"sigwrap: there are no sessions in {nowhere}" in failed.stderr
    failed = run("sessions", "--store", nowhere)
    assert (failed.returncode, failed.stdout) == (125, "")
    assert f"sigwrap: there is no store {nowhere} (choose another with --store)" in failed.stderr


def test_a_store_that_nobody_has_named_may_still_be_missing(tmp_path: Path) -> None:
    line = [sys.executable, "-m", "sigwrap", "sessions"]
    done = subprocess.run(line, capture_output=True, env=environment(HOME=str(tmp_path)))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"no sessions yet\n", b"")


def test_an_empty_home_is_none() -> None:
    line = [sys.executable, "-m", "sigwrap", "sessions"]
    done = subprocess.run(line, capture_output=True, text=True, env=environment(HOME=""))
    assert (done.returncode, done.stdout) == (125, "")
    assert "there is no home folder for the event log (give a folder with --store)" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("report", "unknown"), "no session is called 'unknown'"),
        (("report", "-o", "/nowhere/report"), "can't write /nowhere/report"),
        (("replay", "--speed", "0"), "--speed 0: it must be more than 0"),
        (("replay", "--speed", "nan"), "--speed nan"),
        (("replay", "--speed", "2", "--instant"), "exclude each other"),
        (("replay", "--until", "0"), "the first event has number 1"),
        (("replay", "--until", "403"), "--until 403: the last event has number 402"),
        (("report", "--json", "--format", "text"), "--json and --format text exclude each other"),
        (("sessions", "--store", ""), "--store '': an empty word names no folder"),
        (("report", "my.yaml"), "'my.yaml', which looks like a policy (to check it: sigwrap pol"),
        (("report", "./my.yml"), "to run under it: sigwrap -p ./my.yml -- COMMAND"),
    ],
)
def test_a_mistake_is_one_line(run: Run, arguments: tuple[str, ...], complaint: str) -> None:
    failed = run(*arguments)
    assert failed.returncode != 0
    assert complaint in failed.stderr
    assert "Traceback" not in failed.stderr


def test_a_reader_who_has_seen_enough_is_no_error(run: Run, store: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    for command in (("replay", "--instant"), ("report",), ("sessions",), ("verify",)):
        ended = subprocess.run(
            [sys.executable, "-m", "sigwrap", *command],
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(SIGWRAP_STORE=str(store)),
        )
        assert (ended.returncode, ended.stderr) == (0, "")
    os.close(writing)
