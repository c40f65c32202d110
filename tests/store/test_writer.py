from __future__ import annotations

import errno
import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from sigwrap.errors import InternalError, StoreError
from sigwrap.log import writer
from sigwrap.log.codec import encode_payload
from sigwrap.log.journal import writer_lives
from sigwrap.log.writer import INDEX_BATCH, SessionLog

from .conftest import Recorder, journal_of, seqs_of


def fail(*_arguments: object) -> None:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def rows_in_database(log: SessionLog) -> int:
    return int(log._database._connection.execute("SELECT count(*) FROM events").fetchone()[0])


def test_an_appended_event_is_in_the_journal_before_append_returns(record: Recorder) -> None:
    log = record(exits=0)
    seq = log.append("process_exited", 5, {"exit_code": 3}, 99)
    last_line = journal_of(log).read_bytes().splitlines()[-1]
    assert last_line == b'2\t99\tprocess_exited\t5\t{"v":1,"exit_code":3}\t' + log.head.encode()
    assert (seq, log.seq, log.pending, rows_in_database(log)) == (2, 2, 2, 0)


def test_folding_moves_at_most_the_limit_into_the_database(record: Recorder) -> None:
    log = record(exits=9)
    assert log.index_rows(4) == 6
    assert rows_in_database(log) == 4
    assert log.index_rows() == 0
    assert rows_in_database(log) == 10


def test_a_clean_end_leaves_one_file_that_needs_no_writable_folder(
    log: SessionLog, tmp_path: Path
) -> None:
    log.close()
    assert os.listdir(tmp_path / "sessions") == ["s1.db"]
    database = sqlite3.connect(f"file:{log.path}?immutable=1", uri=True)
    assert database.execute("SELECT count(*) FROM events").fetchone() == (4,)
    assert database.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    database.close()


def test_the_folders_and_files_are_the_user_s_alone(tmp_path: Path) -> None:
    store = tmp_path / "new" / "store"
    log = SessionLog.create(str(store), "s1")
    log.append("process_exited", 1, {}, 1)
    log.index_rows()
    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode)
        for path in (store, store / "sessions", *(store / "sessions").iterdir())
    }
    log.close()
    assert modes == {"store": 0o700, "sessions": 0o700, "s1.db": 0o600, "s1.journal": 0o600}


def test_a_fold_is_wanted_for_many_rows_or_large_ones(
    record: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = record(exits=INDEX_BATCH - 2)
    wanted_before = log.wants_indexing
    log.append("process_exited", 1, {}, 1)
    assert (wanted_before, log.wants_indexing) == (False, True)
    log.index_rows()
    size = len(encode_payload("process_exited", {"comm": "x"}))
    log.append("process_exited", 1, {"comm": "x"}, 1)
    for limit, wanted in ((size, True), (size + 1, False)):
        monkeypatch.setattr(writer, "INDEX_BATCH_BYTES", limit)
        assert log.wants_indexing is wanted


def test_the_lock_says_whether_the_writer_lives_and_no_child_inherits_it(log: SessionLog) -> None:
    journal = str(journal_of(log))
    child = subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        close_fds=False,
    )
    assert child.stdout is not None
    child.stdout.readline()
    assert writer_lives(journal)
    # What the kernel does at the writer's death.
    os.close(log._journal.fd)
    assert not writer_lives(journal)
    child.communicate(b"\n")
    log._database.close()


def test_events_that_pile_up_are_refused_in_the_end(
    record: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "PENDING_LIMIT", 4)
    log = record(exits=3)
    with pytest.raises(StoreError, match="4 events wait"):
        log.append("process_exited", 1, {}, 1)
    log.index_rows()
    assert log.append("process_exited", 1, {}, 1) == 5


def test_large_events_that_pile_up_are_refused_at_the_limit(
    record: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = record(exits=0)
    log.index_rows()
    size = len(encode_payload("process_exited", {"comm": "x"}))
    monkeypatch.setattr(writer, "PENDING_LIMIT_BYTES", size + 1)
    log.append("process_exited", 1, {"comm": "x"}, 1)
    log.append("process_exited", 1, {"comm": "x"}, 1)
    log.index_rows()
    monkeypatch.setattr(writer, "PENDING_LIMIT_BYTES", size)
    log.append("process_exited", 1, {"comm": "x"}, 1)
    with pytest.raises(StoreError, match="1 events wait"):
        log.append("process_exited", 1, {"comm": "x"}, 1)
    log.index_rows()
    log.append("process_exited", 1, {"comm": "x"}, 1)


@pytest.mark.parametrize("payload", [{"a": float("nan")}, {"a": object()}])
def test_a_payload_that_is_no_json_changes_nothing(
    log: SessionLog, payload: dict[str, object]
) -> None:
    before = (log.seq, log.head, log.pending)
    with pytest.raises((TypeError, ValueError)):
        log.append("process_exited", 1, payload, 1)
    with pytest.raises(InternalError):
        log.append("made_up", 1, {}, 1)
    assert (log.seq, log.head, log.pending) == before


@pytest.mark.parametrize(("durable", "syncs"), [(True, 3), (False, 0)])
def test_a_durable_log_syncs_each_event_and_no_other_does(
    record: Recorder, monkeypatch: pytest.MonkeyPatch, durable: bool, syncs: int
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fdatasync", synced.append)
    record(exits=2, durable=durable)
    assert len(synced) == syncs


def test_the_database_is_synced_before_the_journal_is_removed(
    log: SessionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = journal_of(log)
    had_journal: list[bool] = []
    monkeypatch.setattr(os, "fsync", lambda fd: had_journal.append(journal.exists()))
    log.close()
    assert had_journal == [True]
    assert not journal.exists()


def test_a_copy_is_put_in_place_whenever_the_log_has_doubled(
    record: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = record(exits=0)
    copied: list[int] = []
    monkeypatch.setattr(os, "sendfile", lambda *_arguments: copied.append(log.seq))
    for _ in range(20):
        log.index_rows()
        log.checkpoint()
        log.append("process_exited", 1, {}, 1)
    assert copied == [1, 2, 4, 8, 16]
    monkeypatch.setattr(writer, "COPIED_MEANWHILE_BYTES", 4096)
    log.append("process_exited", 1, {}, log.seq * 2)
    log.index_rows()
    log._rows_in_place = 1
    log.checkpoint()
    assert len(copied) == 5
    monkeypatch.undo()


def test_an_event_that_can_t_be_synced_is_taken_back(
    record: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = record(durable=True)
    journal = journal_of(log)
    before = (log.seq, log.head, journal.read_bytes())

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", fail)
        with pytest.raises(StoreError, match="Input/output error"):
            log.append("process_exited", 1, {}, 1)
    assert (log.seq, log.head, journal.read_bytes()) == before
    assert log.append("process_exited", 1, {}, 1) == before[0] + 1


def test_a_torn_line_that_can_t_be_cut_is_cut_before_the_next(
    log: SessionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_write = os.write

    def write_half(fd: int, data: bytes) -> int:
        return real_write(fd, data[: len(data) // 2])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", write_half)
        patch.setattr(os, "ftruncate", fail)
        with pytest.raises(StoreError, match="only part of an event was written"):
            log.append("process_exited", 1, {}, 1)
        with pytest.raises(StoreError, match="can't repair"):
            log.append("process_exited", 1, {}, 1)
    assert seqs_of(log) == [1, 2, 3, 4]
    assert log.append("process_exited", 1, {}, 1) == 5
    assert seqs_of(log) == [1, 2, 3, 4, 5]


def test_neither_a_session_nor_what_it_left_is_overwritten(
    record: Recorder, tmp_path: Path
) -> None:
    log = record()
    with pytest.raises(StoreError, match="File exists"):
        record()
    assert writer_lives(str(journal_of(log)))
    log.close()
    with pytest.raises(StoreError, match="File exists"):
        record()
    assert os.listdir(tmp_path / "sessions") == ["s1.db"]


def test_a_store_that_is_a_file_is_an_error_with_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="--store") as caught:
        SessionLog.create(str(tmp_path / "file"), "s1")
    assert str(tmp_path / "file") in caught.value.message


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_store_that_can_t_be_written_is_an_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="Permission denied"):
        SessionLog.create(str(tmp_path / "store"), "s1")


def test_outside_clients_can_t_change_the_log_by_accident(log: SessionLog) -> None:
    log.close()
    database = sqlite3.connect(log.path)
    for statement in ("DELETE FROM events", "UPDATE events SET pid = 1"):
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            database.execute(statement)
    database.close()
