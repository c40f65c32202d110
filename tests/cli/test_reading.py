from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path

import pytest

from sigwrap.log.writer import SessionLog
from tests.cli.conftest import Run
from tests.support.harness import Sigwrap


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture(autouse=True)
def head(store: Path) -> str:
    """Two sessions: "older" was killed, "newer" ended; the head of newer."""
    older = SessionLog.create(str(store), "older")
    older.append("session_started", 1, {"session_id": "older", "command": ["sleep", "9"]}, 1)
    os.close(older._journal.fd)
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


def test_sessions_lists_them_the_latest_last(run: Run) -> None:
    _, *lines = run("sessions").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["older", "newer"]
    assert "did not end cleanly" in lines[0] and "exit 3" in lines[1]
    document = json.loads(run("sessions", "--json").stdout)
    assert [file["session_id"] for file in document["sessions"]] == ["older", "newer"]


@pytest.mark.promise("report")
def test_report_is_of_the_latest_session_unless_one_is_named(run: Run, tmp_path: Path) -> None:
    assert run("report").stdout.startswith("Exited, exit 3, ")
    assert run("report", "demo").stdout == run("report").stdout
    assert run("report", "old").stdout.startswith("Did not end cleanly")
    assert json.loads(run("report", "--json").stdout)["exit_status"] == 3
    assert run("report", "--format", "json", "--json").stdout == run("report", "--json").stdout
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
    assert state.startswith("State after event 5")
    assert "Processes (4, 4 running)" in state
    assert json.loads(run("replay", "--until", "5", "--format", "json").stdout)["events"] == 5


def test_what_was_not_recorded_is_said_and_no_empty_stream(run: Run) -> None:
    done = run("replay", "--instant", "--recorded", "stdout")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("sigwrap: no stdout was recorded (")


def test_verify_proves_the_log_or_fails_with_the_row(run: Run, store: Path, head: str) -> None:
    intact = run("verify", "--head", head)
    assert (intact.returncode, intact.stdout.splitlines()[0]) == (
        0,
        "newer: 402 events, hash chain intact (no key)",
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
        ("policy", "learn", "newer", "--extends", "ci"),
        ("policy", "learn", "--new", "newer"),
        ("policy", "try", "ci", "newer"),
    ):
        (line,) = run(*made_of_it).stderr.splitlines()[:1]
        assert line.startswith("sigwrap: newer: NOT INTACT: row 8: it follows row 6"), made_of_it


def test_verify_without_the_right_key_fails(run: Run) -> None:
    refused = run("verify", SIGWRAP_KEY="secret")
    assert refused.returncode == 1
    assert "the log was written without a key" in refused.stdout


def test_store_is_an_option_of_each_command(run: Run, tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere")
    for command in ("report", "replay", "verify"):
        failed = run(command, "--store", nowhere)
        assert failed.returncode != 0
        assert f"sigwrap: there are no sessions in {nowhere}" in failed.stderr
    failed = run("sessions", "--store", nowhere)
    assert (failed.returncode, failed.stdout) == (125, "")
    assert (
        f"sigwrap: the store {nowhere} does not exist (choose another with --store)"
        in failed.stderr
    )


def test_the_default_store_may_be_missing(run: Run, tmp_path: Path) -> None:
    done = run("sessions", SIGWRAP_STORE="", HOME=str(tmp_path / "home"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "no sessions yet\n", "")


def test_an_empty_home_is_none(run: Run) -> None:
    done = run("sessions", SIGWRAP_STORE="", HOME="")
    assert (done.returncode, done.stdout) == (125, "")
    assert (
        "there is no home directory for the event log (choose a directory with --store)"
        in done.stderr
    )


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("report", "unknown"), "no session is called 'unknown'"),
        (("report", "-o", "/nowhere/report"), "can't write /nowhere/report"),
        (("replay", "--speed", "0"), "--speed 0: must be greater than 0"),
        (("replay", "--speed", "nan"), "--speed nan"),
        (("replay", "--speed", "2", "--instant"), "can't be combined"),
        (("replay", "--until", "0"), "the first event is 1"),
        (("replay", "--until", "403"), "--until 403: the last event is 402"),
        (("sessions", "--store", ""), "--store '': the directory can't be empty"),
        (("report", "my.yaml"), "'my.yaml', which looks like a policy (to check it: sigwrap pol"),
        (("report", "./my.yml"), "to run under it: sigwrap -p ./my.yml -- COMMAND"),
    ],
)
def test_a_mistake_is_one_line(run: Run, arguments: tuple[str, ...], complaint: str) -> None:
    failed = run(*arguments)
    assert failed.returncode != 0
    assert complaint in failed.stderr
    assert "Traceback" not in failed.stderr


def test_a_reader_who_has_seen_enough_is_no_error(sigwrap: Sigwrap) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    endless = "with recursive c(x) as (select 1 union all select x + 1 from c) select x from c"
    lines = (["query", endless], ["export", "--format", "csv"], ["replay", "--instant"])
    for command in (*lines, ["report"], ["sessions"], ["verify"]):
        ended = sigwrap.run(*command, stdout=writing)
        assert (ended.returncode, ended.stderr) == (0, b"")
    os.close(writing)
