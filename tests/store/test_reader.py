from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from sigwrap.errors import StoreError
from sigwrap.log import journal, reader
from sigwrap.log.reader import Session
from sigwrap.log.writer import SessionLog

from .conftest import Recorder, journal_of


def seqs(session: Session, after_seq: int = 0) -> list[int]:
    return [event.seq for event in session.events(after_seq)]


@pytest.mark.parametrize("indexed", [0, 1, 4, 6])
def test_events_come_from_journal_and_database_alike(record: Recorder, indexed: int) -> None:
    log = record(exits=5)
    log.index_rows(indexed)
    session = Session("s1", log.path)
    assert seqs(session) == [1, 2, 3, 4, 5, 6]
    assert seqs(session, after_seq=4) == [5, 6]
    first, last = session.first(), session.last()
    assert first is not None and first.type == "session_started"
    assert last is not None and (last.seq, last.pid, last.hash) == (6, 104, log.head)
    assert session.running
    log.close()
    assert seqs(session) == [1, 2, 3, 4, 5, 6]
    assert not session.running


def test_a_log_longer_than_one_fetch_is_read_whole(
    record: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "_ROWS_AT_ONCE", 3)
    log = record(exits=9)
    log.close()
    assert seqs(Session("s1", log.path)) == list(range(1, 11))


def test_a_torn_last_line_is_not_an_event(log: SessionLog) -> None:
    journal = journal_of(log)
    whole = journal.read_bytes()
    session = Session("s1", log.path)
    for length in range(len(whole) - 1, len(whole) - 120, -7):
        journal.write_bytes(whole[:length])
        assert seqs(session) == list(range(1, whole[:length].count(b"\n") + 1))
    journal.write_bytes(whole)


def test_any_sqlite_client_reads_a_running_session_as_of_when_it_last_doubled(
    record: Recorder,
) -> None:
    log = record(exits=300)
    client = (
        "import sqlite3,sys; print(sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchall())"
    )
    query = "SELECT count(*), max(seq) FROM events"
    for appended, seen in ((0, 301), (300, 301), (1, 602)):
        for _ in range(appended):
            log.append("process_exited", 1, {}, 1)
        log.index_rows(log.pending)
        log.checkpoint()
        found = subprocess.run(
            [sys.executable, "-c", client, log.path, query],
            capture_output=True,
            text=True,
            check=True,
        )
        assert found.stdout == f"[({seen}, {seen})]\n"
        assert log.objection() == ""


def test_readers_see_every_row_while_the_writer_folds_and_ends(record: Recorder) -> None:
    log = record(exits=0)
    session = Session("s1", log.path)
    over = threading.Event()
    wrong: list[str] = []
    readings: list[list[int]] = [[], []]

    def read(lengths: list[int]) -> None:
        while True:
            last_round = over.is_set()
            try:
                found = seqs(session)
                last = session.last()
            except Exception as error:
                wrong.append(repr(error))
                return
            if found != list(range(1, len(found) + 1)) or (lengths and len(found) < lengths[-1]):
                wrong.append(f"gap or loss in {found[:3]}...{found[-3:]} after {lengths[-1:]}")
                return
            if last is None or last.seq < len(found):
                wrong.append(f"the last is {last} after {len(found)}")
                return
            lengths.append(len(found))
            if last_round:
                return

    threads = [threading.Thread(target=read, args=(lengths,)) for lengths in readings]
    for thread in threads:
        thread.start()
    try:
        while min(map(len, readings)) < 5 and not wrong:
            log.append("process_exited", 1, {"comm": "x" * 5_000}, 1)
            if log.pending >= 100:
                log.index_rows()
                log.checkpoint()
        log.close()
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert wrong == []
    assert [lengths[-1] for lengths in readings] == [log.seq, log.seq]


def test_the_last_event_is_found_behind_long_ones(
    record: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "_TAIL_BYTES", 64)
    log = record(exits=2)
    session = Session("s1", log.path)
    for size in (10, 1_000, 5_000, 10):
        seq = log.append("process_exited", 1, {"comm": "x" * size}, 1)
        last = session.last()
        assert last is not None and last.seq == seq


def test_rows_that_another_program_left_in_a_wal_are_told_of(record: Recorder) -> None:
    log = record(exits=2)
    Path(log.path + "-wal").write_bytes(b"x")
    log.close()  # removes what came before
    Path(log.path + "-wal").mkdir()
    assert seqs(Session("s1", log.path)) == [1, 2, 3]
    Path(log.path + "-wal").rmdir()
    Path(log.path + "-wal").write_bytes(b"")
    assert seqs(Session("s1", log.path)) == [1, 2, 3]
    Path(log.path + "-wal").write_bytes(b"x")
    with pytest.raises(StoreError, match="another program wrote rows"):
        seqs(Session("s1", log.path))


def test_what_is_no_log_of_ours_is_refused(tmp_path: Path) -> None:
    text, other, newer = tmp_path / "text.db", tmp_path / "other.db", tmp_path / "newer.db"
    text.write_text("something else, but long enough to be read as a header " * 9)
    with closing(sqlite3.connect(other)) as made:
        made.execute("CREATE TABLE events(seq)")
    log = SessionLog.create(str(tmp_path), "s1")
    log.close()
    os.rename(log.path, newer)
    with closing(sqlite3.connect(newer)) as made:
        made.execute("PRAGMA user_version = 99")
    for path, complaint in (
        (text, "not a database"),
        (tmp_path, "it is a directory"),
        (other, "is not an event log"),
        (newer, "newer sigwrap"),
        (tmp_path / "missing.db", "there is no event log"),
    ):
        with pytest.raises(StoreError, match=complaint):
            seqs(Session("s1", str(path)))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount the folder read-only")
def test_a_closed_log_is_read_from_a_read_only_folder(log: SessionLog, tmp_path: Path) -> None:
    log.close()
    folder = str(tmp_path / "sessions")
    bind = subprocess.run(["mount", "--bind", folder, folder], capture_output=True, check=False)
    if bind.returncode != 0:
        pytest.skip(f"can't mount: {bind.stderr.decode().strip()}")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
        assert seqs(Session("s1", log.path)) == [1, 2, 3, 4]
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)
