"""`sigwrap query` and `sigwrap export`, as they are typed."""

from __future__ import annotations

import csv
import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import sqlite_utils

from tests.cli.conftest import Run
from tests.report.conftest import Scenario
from tests.support.harness import UNDER_TEST, Sigwrap

ENDLESS = "with recursive c(x) as (select 1 union all select x + 1 from c) select x from c"


@pytest.fixture(autouse=True)
def store(tmp_path: Path) -> Path:
    """Two sessions, of which "bad" is damaged in its third row."""
    folder = tmp_path / "store"
    for name in ("bad", "good"):
        log = Scenario(folder, name)
        log.execute(10, 1, "npm", "start")
        log.add("exec_denied", 11, argv=["rm", "-rf", "\x1b[2J"], comm="sh", rule_name="no-rm")
        log.end()
    file = sqlite3.connect(folder / "sessions" / "bad.db")
    file.execute("drop trigger events_are_not_changed")
    file.execute("update events set payload = 'x' where seq = 3")
    file.commit()
    file.close()
    return folder


def test_without_sql_it_says_what_there_is(run: Run) -> None:
    done = run("query")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\ndenials: session, seq, time" in done.stdout
    assert done.stdout.count('sigwrap query "select') == 2


@pytest.mark.promise("query")
def test_each_format_has_the_answer(run: Run) -> None:
    sql = "select command, rule from execs where outcome = 'denied'"
    command = "rm -rf $'\\e[2J'"
    assert run("query", sql, "good").stdout.splitlines() == [
        "command          rule",
        "───────────────  ─────",
        f"{command}  no-rm",
    ]
    assert json.loads(run("query", sql, "good", "--format", "json").stdout) == [
        {"command": command, "rule": "no-rm"}
    ]
    assert json.loads(run("query", sql, "good", "--format", "nl").stdout)["rule"] == "no-rm"
    lines = run("query", sql, "good", "--format", "csv").stdout.splitlines()
    assert list(csv.reader(lines)) == [["command", "rule"], [command, "no-rm"]]
    assert run("query", sql, "good", "--format", "json", "-o", "x.json").stdout == ""


def test_a_damaged_session_is_named_and_the_others_are_answered(run: Run) -> None:
    done = run("query", "select session, count(*) from events group by 1", "--all")
    assert [line.split() for line in done.stdout.splitlines()[2:]] == [["bad", "2"], ["good", "4"]]
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("sigwrap: read only the start of bad: ")
    assert "row 3 can't be read" in line
    alone = run("query", "select count(*) from events", "bad")
    assert (alone.returncode, alone.stdout) == (125, "")
    assert len(alone.stderr.splitlines()) == 1


def test_one_that_is_no_log_at_all_is_left_out(run: Run, store: Path) -> None:
    (store / "sessions" / "none.db").write_text("x" * 5000)
    done = run("query", "select count(*) from sessions", "--all")
    assert done.stdout.split()[-1] == "2"
    assert "sigwrap: skipped none: " in done.stderr
    assert done.returncode == 1


@pytest.mark.parametrize("export_format", ["jsonl", "csv", "prom", "sqlite"])
def test_an_export_of_all_says_what_is_missing(run: Run, export_format: str) -> None:
    done = run("export", "--format", export_format, "--all", "-o", "out")
    assert done.returncode == 1
    assert done.stderr.startswith("sigwrap: read only the start of bad: ")
    assert run("export", "--format", export_format, "bad", "-o", "x").returncode == 125
    assert run("export", "--format", export_format, "good", "-o", "y").returncode == 0


def test_an_exported_database_is_what_other_clients_read(run: Run, tmp_path: Path) -> None:
    assert run("export", "--format", "sqlite", "good", "-o", "out.db").returncode == 0
    database = sqlite_utils.Database(tmp_path / "out.db")
    try:
        assert {"sessions", "execs", "denials", "events"} <= set(database.table_names())
        (row,) = database["denials"].rows
        assert (row["kind"], row["rule"], row["count"]) == ("exec", "no-rm", 1)
        assert [found["rule"] for found in database.table("execs").search("rf")] == ["no-rm"]
        assert database.execute("pragma integrity_check").fetchone() == ("ok",)
    finally:
        database.close()


def test_exported_csv_is_one_row_an_event(run: Run) -> None:
    rows = list(csv.DictReader(run("export", "--format", "csv", "good").stdout.splitlines()))
    assert [row["type"] for row in rows] == [
        "session_started",
        "exec_audited",
        "exec_denied",
        "session_ended",
    ]
    assert (rows[2]["outcome"], rows[2]["rule"]) == ("denied", "no-rm")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("query", "select 1", "nosuch"), "no session is called 'nosuch'"),
        (("query", "select 1", "--all", "good"), "--all and SESSION can't be combined"),
        (("query", "--all"), "no SQL given"),
        (("query", "good"), 'good is not SQL (sigwrap query "select * from denials" good)'),
        (("query", "select x"), "there is no column x"),
        (("query", "delete from execs"), "only SELECT is allowed"),
        (("query", "select 1", "good", "-o", "/nowhere/x"), "can't write /nowhere/x: No such file"),
        (("query", "select 1", "good", "-o", "."), "can't write .: Is a directory"),
        (("query", "select 1", "good", "-o", "/dev/full"), "can't write /dev/full: No space left"),
        (
            ("query", "select 1", "good", "-o", "store/sessions/good.db"),
            "it is the log of a session",
        ),
        (
            ("export", "--format", "csv", "-o", "store/sessions/bad.db", "good"),
            "the log of a session",
        ),
        (("export", "--format", "sqlite", "good"), "--format sqlite needs -o FILE"),
        (("export", "--format", "sqlite", "good", "-o", "/dev/null"), "needs a regular file"),
        (("export", "--format", "xml"), "see sigwrap export --help"),
        (("query", "select 1", "--store", "/nowhere", "--all"), "there are no sessions in"),
    ],
)
def test_a_mistake_is_one_line_and_changes_nothing(
    run: Run, store: Path, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    done = run(*words)
    assert (done.returncode, done.stdout) == (125, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("sigwrap: ") and said in line
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}


def test_a_log_is_not_overwritten_through_another_name_either(run: Run, store: Path) -> None:
    log = store / "sessions" / "good.db"
    for place in (Path("link"), Path("hard")):
        (store.parent / place).unlink(missing_ok=True)
    (store.parent / "link").symlink_to(log)
    os.link(log, store.parent / "hard")
    before = log.read_bytes()
    for name in ("link", "hard"):
        assert run("export", "--format", "csv", "good", "-o", name).returncode == 125
    assert log.read_bytes() == before


def test_a_file_keeps_its_mode_and_a_failed_one_its_content(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    target.write_text("old")
    target.chmod(0o600)
    failed = run("query", "select json('{')", "good", "-o", "out.csv")
    assert failed.returncode == 125
    assert target.read_text() == "old"
    assert run("query", "select 1 as n", "good", "--format", "csv", "-o", "out.csv").returncode == 0
    assert target.read_text() == "n\n1\n"
    assert target.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir() if "unfinished" in path.name] == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_leaves_nothing_behind(
    store: Path, tmp_path: Path, number: signal.Signals
) -> None:
    place = tmp_path / "out"
    place.mkdir()
    process = subprocess.Popen(
        [UNDER_TEST, "query", ENDLESS, "good", "-o", str(place / "x"), "--store", str(store)],
        stderr=subprocess.PIPE,
    )
    while not (found := list(place.iterdir())) or not found[0].stat().st_size:
        assert process.poll() is None
        os.sched_yield()
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == -number
    assert said == b""
    assert list(place.iterdir()) == []


def test_a_full_standard_output_is_one_line(sigwrap: Sigwrap) -> None:
    for words in (
        ("query", "select 1", "good"),
        ("export", "--format", "csv", "good"),
        ("report", "good"),
    ):
        with open("/dev/full", "w") as full:
            done = sigwrap.run(*words, stdout=full)
        assert done.returncode == 125
        assert done.stderr == b"sigwrap: can't write to standard output: No space left on device\n"


def test_a_closed_standard_output_is_one_line(store: Path) -> None:
    line = ["sh", "-c", f"exec {UNDER_TEST} report good --store {store} >&-"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 125
    assert done.stderr == "sigwrap: can't write to standard output: Bad file descriptor\n"


def test_a_full_disk_is_said_of_a_database_too(store: Path, small_disk: Path) -> None:
    (small_disk / "ballast").write_bytes(bytes(480 << 10))
    done = subprocess.run(
        [UNDER_TEST, "export", "--format", "sqlite", "-o", "x.db", "good", "--store", str(store)],
        cwd=small_disk,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 125
    assert done.stderr.startswith("sigwrap: the database can't be written: ")
    assert len(done.stderr.splitlines()) == 1
    assert os.listdir(small_disk) == ["ballast"]


def test_a_query_is_answered_while_the_session_runs(store: Path, run: Run) -> None:
    log = Scenario(store, "live")
    log.execute(10, 1, "sleep", "9")
    done = run("query", "select state, command from sessions", "live", "--format", "csv")
    assert done.stdout == "state,command\nrunning,npm start\n"
    log.end()


def test_a_run_imports_none_of_it() -> None:
    look = (
        "import sys; import sigwrap.cli.app;"
        "print([each for each in ('sqlite_utils', 'sigwrap.report.query') "
        "if each in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
