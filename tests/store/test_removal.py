from __future__ import annotations

import os
from pathlib import Path

import pytest

from sigwrap.errors import SessionError
from sigwrap.log.catalog import (
    SessionFile,
    StoredFile,
    list_sessions,
    remove,
    stored_files,
    surplus,
)

from .conftest import Recorder, leave_as_killed

DAY_NS = 86_400 * 10**9


def files_of(store: Path, session_id: str) -> list[StoredFile]:
    return [each for each in stored_files(str(store)) if each.session_id == session_id]


def removed(store: Path, session_id: str) -> tuple[int, list[str]]:
    return remove(str(store), session_id, files_of(store, session_id))


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_all_files_of_the_session_go_and_no_others(record: Recorder, tmp_path: Path) -> None:
    sessions, checkpoints = tmp_path / "sessions", tmp_path / "checkpoints"
    killed = record("s1")
    killed.copy()
    leave_as_killed(killed)
    record("s11").close()
    for name in ("s1.db.new-0123456789ab", "s1.db-wal", "s1.journal.new-0123456789ab"):
        (sessions / name).write_text("x")
    kept = ("s1.db.mine", "s1.txt", "s1.db.new-short", "xs1.db.bak")
    for name in kept:
        (sessions / name).write_text("x")
    (checkpoints / "s11-1.db").write_text("x")
    size = sum(each.size for each in files_of(tmp_path, "s1"))
    assert removed(tmp_path, "s1") == (size, [])
    assert names(sessions) == sorted([*kept, "s11.db"])
    assert names(checkpoints) == ["s11-1.db"]


def test_one_that_runs_is_not_removed(record: Recorder, tmp_path: Path) -> None:
    record("s1")
    with pytest.raises(SessionError, match="s1 is running"):
        removed(tmp_path, "s1")
    assert names(tmp_path / "sessions") == ["s1.db", "s1.journal"]


def test_one_that_is_just_starting_is_not_removed(tmp_path: Path) -> None:
    """Its journal is there before its lock is."""
    (tmp_path / "sessions").mkdir()
    (tmp_path / "sessions" / "s1.journal").touch()
    with pytest.raises(SessionError, match="s1 is running"):
        removed(tmp_path, "s1")


def test_links_are_neither_followed_nor_removed(record: Recorder, tmp_path: Path) -> None:
    record("s1").close()
    mine = tmp_path / "mine"
    mine.write_text("mine")
    link = tmp_path / "sessions" / "s1.journal"
    link.symlink_to(mine)
    assert removed(tmp_path, "s1")[1] == [str(link)]
    assert mine.read_text() == "mine" and link.is_symlink()


def test_a_folder_that_is_a_link_is_not_gone_into(record: Recorder, tmp_path: Path) -> None:
    record("s1").close()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "s1-1.db").write_text("mine")
    (tmp_path / "checkpoints").symlink_to(elsewhere)
    with pytest.raises(Exception, match=r"can't open the directory .*checkpoints"):
        removed(tmp_path, "s1")
    assert names(elsewhere) == ["s1-1.db"]


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_files_of_another_user_are_left(record: Recorder, tmp_path: Path) -> None:
    record("s1").close()
    database = tmp_path / "sessions" / "s1.db"
    os.chown(database, 12_345, -1)
    assert removed(tmp_path, "s1") == (0, [str(database)])
    assert database.exists()


def session(session_id: str, days: int, size: int = 10, *, running: bool = False) -> SessionFile:
    """That ended so many days ago."""
    file = StoredFile("sessions", f"{session_id}.db", session_id, True, size, 0.0)
    return SessionFile(
        id=session_id,
        path="",
        running=running,
        events=1,
        last_event_ns=(100 - days) * DAY_NS,
        files=(file,),
    )


SESSIONS = [
    *(session("old", 50), session("runs", 40, running=True), session("middle", 20)),
    *(session("young", 10), session("new", 0)),
]


@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        ({"older_than_s": 30 * 86_400}, ["old"]),
        ({"older_than_s": 5 * 86_400}, ["old", "middle", "young"]),
        ({"keep": 1}, ["old", "middle", "young"]),
        ({"keep": 0}, ["old", "middle", "young", "new"]),
        ({"keep": 9}, []),
        ({"older_than_s": 5 * 86_400, "keep": 2}, ["old", "middle"]),
        ({"max_size": 35}, ["old", "middle"]),
        ({"max_size": 0}, ["old", "middle", "young", "new"]),
        ({"max_size": 0, "keep": 1}, ["old", "middle", "young"]),
        ({"max_size": 1000}, []),
    ],
)
def test_which_are_too_many(wanted: dict[str, int], ids: list[str]) -> None:
    assert [file.id for file in surplus(SESSIONS, 100 * DAY_NS, **wanted)] == ids


def test_one_that_can_t_be_read_is_as_old_as_its_files(tmp_path: Path) -> None:
    (tmp_path / "sessions").mkdir()
    damaged = tmp_path / "sessions" / "damaged.db"
    damaged.write_text("x")
    os.utime(damaged, (1_000, 1_000))
    (listed,) = list_sessions(str(tmp_path))
    (found,) = surplus([listed], 2_000 * 10**9, older_than_s=60)
    assert found.id == "damaged"
    assert surplus([listed], 1_030 * 10**9, older_than_s=60) == []
