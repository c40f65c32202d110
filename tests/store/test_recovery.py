from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from sigwrap.errors import SessionError, StoreError
from sigwrap.log.catalog import list_sessions, open_session, recover, stored_files
from sigwrap.log.writer import SessionLog
from sigwrap.report.check.verify import Outcome, Verification, verify_session
from tests.support.waiting import PATIENCE_S

from .conftest import Recorder, leave_as_killed

ROUNDS_AT_MOST = 200


def recovered(store: Path) -> int:
    return recover(str(store), "s1", stored_files(str(store)))


def rows(database: Path) -> int:
    with closing(sqlite3.connect(database)) as connection:
        (count,) = connection.execute("SELECT count(*) FROM events").fetchone()
        return int(count)


def verified(store: Path) -> Verification:
    return verify_session(open_session(str(store), "s1"), None)


@pytest.fixture
def killed(record: Recorder, tmp_path: Path) -> Path:
    """A store with a session that has 601 events, of which its database has none."""
    leave_as_killed(record("s1", exits=600))
    return tmp_path


def test_any_client_reads_all_of_it_from_one_file(killed: Path) -> None:
    database = killed / "sessions" / "s1.db"
    assert rows(database) == 0
    with (killed / "sessions" / "s1.journal").open("ab") as journal:
        journal.write(b"602\t7\tprocess_ex")  # append never returned for that
    before = verified(killed)
    (killed / "sessions" / "s1.db.new-0123456789ab").write_text("x")
    assert recovered(killed) == 601
    assert os.listdir(killed / "sessions") == ["s1.db"]
    assert rows(database) == 601
    assert database.stat().st_mode & 0o777 == 0o600
    assert verified(killed) == before
    assert (before.outcome, before.ended, before.events) == (Outcome.INTACT, False, 601)
    (listed,) = list_sessions(str(killed))
    assert (listed.running, listed.ended_cleanly, listed.is_in_several_files) == (False,) * 3


def test_one_that_runs_is_left_alone(record: Recorder, tmp_path: Path) -> None:
    record("s1")
    with pytest.raises(SessionError, match="s1 is running"):
        recovered(tmp_path)


def test_without_an_event_in_the_journal_the_database_is_the_log(
    record: Recorder, tmp_path: Path
) -> None:
    record("s1").close()
    journal = tmp_path / "sessions" / "s1.journal"
    journal.write_bytes(b"1\t2\ttorn")
    assert recovered(tmp_path) == 4
    assert not journal.exists()


@pytest.mark.parametrize("database", ["missing", "damaged"])
def test_the_journal_is_enough(killed: Path, database: str) -> None:
    path = killed / "sessions" / "s1.db"
    path.unlink()
    if database == "damaged":
        path.write_text("no database")
    assert recovered(killed) == 601
    assert rows(path) == 601


def test_a_database_that_has_more_than_its_journal_is_kept_and_not_intact(killed: Path) -> None:
    journal = killed / "sessions" / "s1.journal"
    lines = journal.read_bytes().splitlines(keepends=True)
    recovered(killed)
    for left in (1, 5):
        journal.write_bytes(b"".join(lines[:left]))
        found = verified(killed)
        assert (found.outcome, found.row) == (Outcome.BROKEN, 601)
        assert "the database and the journal differ at this row" in found.problem
        with pytest.raises(StoreError, match="has rows that its journal lacks"):
            recovered(killed)
        assert rows(killed / "sessions" / "s1.db") == 601
        assert sorted(os.listdir(killed / "sessions")) == ["s1.db", "s1.journal"]


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda lines: [lines[0], b"x\n", *lines[2:]], "line 2 of the journal"),
        (lambda lines: [lines[0], *lines[2:]], "line 2 of the journal .* is out of order"),
    ],
)
def test_a_damaged_journal_is_kept(
    killed: Path, damage: Callable[[list[bytes]], list[bytes]], problem: str
) -> None:
    journal = killed / "sessions" / "s1.journal"
    journal.write_bytes(b"".join(damage(journal.read_bytes().splitlines(keepends=True))))
    with pytest.raises(StoreError, match=problem):
        recovered(killed)
    assert sorted(os.listdir(killed / "sessions")) == ["s1.db", "s1.journal"]


def test_a_journal_that_is_a_link_is_not_followed(record: Recorder, tmp_path: Path) -> None:
    record("s1").close()
    link = tmp_path / "sessions" / "s1.journal"
    link.symlink_to(tmp_path / "nowhere")
    with pytest.raises(StoreError, match="is a link"):
        recovered(tmp_path)
    assert link.is_symlink()


def test_a_folder_without_room_loses_nothing(record: Recorder, small_disk: Path) -> None:
    log = SessionLog.create(str(small_disk), "s1")
    log.append("session_started", 1, {"session_id": "s1", "command": ["x" * 7_000]}, 1)
    for number in range(40):
        log.append("process_exited", number, {"comm": "x" * 7_000}, number)
    leave_as_killed(log)
    with pytest.raises(StoreError, match=r"can't rewrite "):
        recovered(small_disk)
    assert verified(small_disk).events == 41


@pytest.mark.tier("ci")
def test_a_kill_at_any_call_loses_nothing(
    killed: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """At every call that changes something, one after the other, until none is left."""
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    calls = "link,linkat,rename,renameat,unlink,unlinkat,fsync,sendfile,flock,pwrite64"
    expected = verified(killed)
    whole = tmp_path_factory.mktemp("whole") / "store"
    shutil.copytree(killed, whole)
    for number in range(1, ROUNDS_AT_MOST):
        shutil.rmtree(killed / "sessions")
        shutil.copytree(whole / "sessions", killed / "sessions")
        line = ["strace", "-qq", "-o", os.devnull, "-e", f"trace={calls}"]
        line += ["-e", f"inject={calls}:signal=SIGKILL:when={number}"]
        line += [sys.executable, "-m", "sigwrap", "sessions", "recover", "--store", str(killed)]
        done = subprocess.run(line, capture_output=True, timeout=PATIENCE_S, env=_ENVIRONMENT)
        assert verified(killed) == expected, number
        if done.returncode == 0:
            break
        recovered(killed)
        assert os.listdir(killed / "sessions") == ["s1.db"], number
        assert verified(killed) == expected, number
    assert done.returncode == 0 and number > 8, done.stderr
    assert os.listdir(killed / "sessions") == ["s1.db"]


_ENVIRONMENT = {"PYTHONPATH": os.pathsep.join(sys.path), "PATH": os.environ.get("PATH", os.defpath)}


@pytest.fixture
def forged(record: Recorder, tmp_path: Path) -> Path:
    """Beside a session that has ended, the journal of another that is longer and says less."""
    log = record("s1", exits=3)
    log.append("session_ended", 1, {"exit_status": 0, "head": log.head, "counts": {}}, 9)
    log.close()
    (tmp_path / "sessions" / "s1.db").rename(tmp_path / "whole")
    leave_as_killed(record("s1", exits=40))
    (tmp_path / "whole").rename(tmp_path / "sessions" / "s1.db")
    return tmp_path


def test_a_journal_beside_a_session_that_ended_hides_nothing(forged: Path) -> None:
    session = open_session(str(forged), "s1")
    assert [event.seq for event in session.events()] == [1, 2, 3, 4, 5]
    [listed] = list_sessions(str(forged))
    assert listed.ended_cleanly
    with (forged / "sessions" / "s1.journal").open("r+") as journal:
        lines = journal.readlines()
        lines[2] = lines[2].replace('"exit_code":0', '"exit_code":7')
        journal.seek(0)
        journal.writelines(lines)
    found = verified(forged)
    assert (found.outcome, found.row) == (Outcome.BROKEN, 3)
    assert "the journal beside the finished database differs" in found.problem
    with pytest.raises(StoreError, match="it is complete, and its journal has other"):
        recovered(forged)
    assert sorted(os.listdir(forged / "sessions")) == ["s1.db", "s1.journal"]


def test_the_journal_of_a_session_that_ended_may_stay(record: Recorder, tmp_path: Path) -> None:
    """As where its writer is killed before it removes it."""
    log = record("s1")
    counts = {"session_started": 1, "process_exited": 3}
    log.append("session_ended", 1, {"exit_status": 0, "head": log.head, "counts": counts}, 9)
    path = tmp_path / "sessions" / "s1.journal"
    journal = path.read_bytes()
    log.close()
    path.write_bytes(journal)
    path.chmod(0o600)
    assert verified(tmp_path).outcome is Outcome.INTACT
    assert recovered(tmp_path) == 5
    assert os.listdir(tmp_path / "sessions") == ["s1.db"]
