"""A copy of the log while the session goes on."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from sigwrap.errors import StoreError
from sigwrap.log.catalog import list_sessions, open_session
from sigwrap.log.writer import INDEX_BATCH, SessionLog
from sigwrap.report.check.verify import Outcome, verify_session

from .conftest import Recorder


def test_a_copy_is_a_log_of_its_own_and_the_session_goes_on(
    record: Recorder, tmp_path: Path
) -> None:
    log = record(exits=3 * INDEX_BATCH)
    log.index_rows(5)
    head, seq = log.head, log.seq
    beats: list[None] = []
    path = log.copy(lambda: beats.append(None))
    assert len(beats) > 3  # whoever waits is thought of
    assert path == str(tmp_path / "checkpoints" / "s1-1.db")
    log.append("process_exited", 1, {}, 1)
    second = log.copy()
    log.close()
    copied = open_session(str(tmp_path), path)
    found = verify_session(copied, None, expected_head=head)
    assert (found.outcome, found.problem, found.ended) == (Outcome.INTACT, "", False)
    assert [event.seq for event in copied.events()] == list(range(1, seq + 1))
    assert copied.id == "s1"
    assert len(list(open_session(str(tmp_path), second).events())) == seq + 1
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700
    assert [each.id for each in list_sessions(str(tmp_path))] == ["s1"]


def test_a_link_in_its_place_leads_nowhere(record: Recorder, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "checkpoints").symlink_to("elsewhere")
    log = record()
    with pytest.raises(StoreError, match="can't write the checkpoint s1-1"):
        log.copy()
    assert not list((tmp_path / "elsewhere").iterdir())
    log.append("process_exited", 1, {}, 1)


def test_a_file_of_that_name_is_replaced(log: SessionLog, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    (tmp_path / "victim").write_text("x")
    (folder / "s1-1.db").symlink_to(tmp_path / "victim")
    log.copy()
    assert (tmp_path / "victim").read_text() == "x"
    assert not (folder / "s1-1.db").is_symlink()


def test_where_the_sessions_folder_was_moved_there_is_none(log: SessionLog, tmp_path: Path) -> None:
    (tmp_path / "sessions").rename(tmp_path / "moved")
    with pytest.raises(StoreError, match="was removed, moved or replaced"):
        log.copy()
    (tmp_path / "moved").rename(tmp_path / "sessions")


def test_on_a_full_disk_nothing_is_left_of_it_and_the_log_is_whole(small_disk: Path) -> None:
    log = SessionLog.create(str(small_disk), "s1")
    log.append("session_started", 1, {"session_id": "s1", "keyed": False}, 1)
    for _ in range(150):
        log.append("process_exited", 1, {"comm": "x" * 700}, 1)
    log.index_rows(1000)
    filler = small_disk / "filler"
    free = os.statvfs(small_disk).f_bavail * os.statvfs(small_disk).f_frsize
    filler.write_bytes(b"x" * (free - 40_000))
    with pytest.raises(StoreError, match=r"can't write the checkpoint .*No space left.*free space"):
        log.copy()
    assert list((small_disk / "checkpoints").iterdir()) == []
    log.append("process_exited", 1, {"comm": "x"}, 1)
    filler.unlink()
    log.close()
    assert verify_session(open_session(str(small_disk), "s1"), None).ended is False
