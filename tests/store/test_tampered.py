"""What somebody does to the files of a session that is being written."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from sigwrap.errors import StoreError
from sigwrap.log import database, writer
from sigwrap.log.database import open_new_database
from sigwrap.log.journal import writer_lives
from sigwrap.log.reader import Session
from sigwrap.log.writer import SessionLog
from sigwrap.report.check.verify import Outcome, verify_session

from .conftest import Recorder, journal_of, seqs_of


@pytest.fixture
def log(record: Recorder) -> SessionLog:
    """Of six events."""
    return record(exits=5)


def folder(log: SessionLog) -> Path:
    return Path(log.path).parent


def written_to(log: SessionLog) -> None:
    with closing(sqlite3.connect(log.path)) as opened:
        opened.execute("INSERT INTO events VALUES (90, 0, 'x', 0, '{}', '')")
        opened.commit()


def put_in_place(log: SessionLog, put: Callable[[Path], object]) -> None:
    journal_of(log).rename("moved")
    put(journal_of(log))


def appended_to(log: SessionLog) -> None:
    with journal_of(log).open("a") as file:
        file.write("x\n")


def made_a_file(log: SessionLog) -> None:
    shutil.rmtree(folder(log))
    folder(log).write_text("")


JOURNAL_CHANGED = "the journal was replaced or changed"
DATABASE_CHANGED = "the database was replaced or changed"
FOLDER_GONE = "its directory was removed, moved, replaced or closed"
DEEDS: dict[str, tuple[Callable[[SessionLog], object], str]] = {
    "journal moved": (lambda log: journal_of(log).rename("moved"), "the journal was removed"),
    "journal emptied": (lambda log: os.truncate(journal_of(log), 0), JOURNAL_CHANGED),
    "line appended": (appended_to, JOURNAL_CHANGED),
    "journal replaced": (
        lambda log: put_in_place(log, lambda path: path.write_text("x")),
        JOURNAL_CHANGED,
    ),
    "journal a folder": (lambda log: put_in_place(log, Path.mkdir), JOURNAL_CHANGED),
    "journal a link": (
        lambda log: put_in_place(log, lambda path: path.symlink_to(Path("moved"))),
        JOURNAL_CHANGED,
    ),
    "database removed": (lambda log: os.unlink(log.path), "the database was removed"),
    "database emptied": (lambda log: os.truncate(log.path, 0), DATABASE_CHANGED),
    "database written to": (written_to, DATABASE_CHANGED),
    "folder removed": (lambda log: shutil.rmtree(folder(log)), FOLDER_GONE),
    "folder moved": (lambda log: folder(log).rename("elsewhere"), FOLDER_GONE),
    "folder a file": (made_a_file, FOLDER_GONE),
}


@pytest.mark.parametrize("deed", DEEDS)
def test_it_is_noticed_and_all_is_written_anew(
    log: SessionLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deed: str
) -> None:
    monkeypatch.chdir(tmp_path)
    log.index_rows(3)
    log.checkpoint()
    assert log.objection() == ""
    do, objection = DEEDS[deed]
    do(log)
    assert log.append("process_exited", 1, {}, 1) == 7
    assert log.objection() == objection
    log.restore()
    assert (log.objection(), writer_lives(str(journal_of(log)))) == ("", True)
    log.append("process_exited", 1, {}, 1)
    assert seqs_of(log) == list(range(1, 9))
    log.close()
    verification = verify_session(Session("s1", log.path), None, expected_head=log.head)
    assert (verification.outcome, verification.problem) == (Outcome.INTACT, "")
    left = [path.name for path in folder(log).iterdir() if ".aside-" not in path.name]
    assert left == ["s1.db"]


@pytest.mark.parametrize("by", ["removed", "a folder", "another link"])
def test_a_changed_link_to_the_store_leaves_the_log_where_it_was(tmp_path: Path, by: str) -> None:
    for name in ("real", "other"):
        (tmp_path / name).mkdir()
    store = tmp_path / "store"
    store.symlink_to("real")
    log = SessionLog.create(str(store), "s1")
    log.append("process_exited", 1, {}, 1)
    store.unlink()
    if by == "a folder":
        store.mkdir()
    if by == "another link":
        store.symlink_to("other")
    assert log.objection() == ""
    with pytest.raises(StoreError, match=f"was moved to {tmp_path}/real/sessions"):
        log.close()
    left = Session("s1", str(tmp_path / "real" / "sessions" / "s1.db"))
    assert [row.seq for row in left.rows()] == [1]


@pytest.mark.parametrize("deed", ["removed", "replaced", "emptied"])
def test_a_log_reached_by_a_link_is_written_again(tmp_path: Path, deed: str) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "store").symlink_to("real")
    log = SessionLog.create(str(tmp_path / "store"), "s1")
    log.append("process_exited", 1, {}, 1)
    assert log.objection() == ""
    if deed == "emptied":
        os.truncate(journal_of(log), 0)
    else:
        shutil.rmtree(tmp_path / "real")
    if deed == "replaced":
        (tmp_path / "real").write_text("")
    assert log.objection()
    log.restore()
    assert log.objection() == ""
    log.close()
    assert seqs_of(log) == [1]


def test_no_link_on_the_way_is_followed_but_those_that_were_there(tmp_path: Path) -> None:
    above = tmp_path / "above"
    above.mkdir()
    log = SessionLog.create(str(above / "store"), "s1")
    log.append("process_exited", 1, {}, 1)
    above.rename(tmp_path / "away")
    above.symlink_to("away")
    assert log.objection() == FOLDER_GONE
    with pytest.raises(StoreError, match="can't rewrite the event log"):
        log.restore()
    above.unlink()
    (tmp_path / "away").rename(above)
    assert log.objection() == "it could not be written for a while"
    log.restore()
    assert log.objection() == ""
    log.close()
    assert seqs_of(log) == [1]


def touched(file: Path) -> None:
    os.utime(file, (1, 1))


def moved_and_back(file: Path) -> None:
    file.rename(file.with_name("away"))
    file.with_name("away").rename(file)


def overwritten(file: Path) -> None:
    others = file.read_bytes().swapcase()
    with file.open("r+b") as opened:
        opened.write(others)


def given_another_name(file: Path) -> None:
    file.with_name("besides").unlink(missing_ok=True)
    file.with_name("besides").hardlink_to(file)


@pytest.mark.parametrize("which", ["journal", "database"])
@pytest.mark.parametrize(
    "deed", [touched, moved_and_back, overwritten, given_another_name, lambda file: file.chmod(0)]
)
def test_any_change_of_a_file_is_tampering(
    log: SessionLog, deed: Callable[[Path], None], which: str
) -> None:
    """The kernel's time of the change tells it, so it has to be some time after our own."""
    file = journal_of(log) if which == "journal" else Path(log.path)
    while not (objection := log.objection()):
        deed(file)
    assert objection == (JOURNAL_CHANGED if which == "journal" else DATABASE_CHANGED)
    log.restore()
    assert log.objection() == ""
    last = log.append("process_exited", 1, {}, 1)
    assert log.objection() == ""
    log.close()
    assert seqs_of(log) == list(range(1, last + 1))


@pytest.mark.parametrize("which", ["journal", "database"])
def test_a_time_that_a_server_sets_later_is_not_tampering(
    record: Recorder, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    """As a network file system does; sizes and files are compared there all the same."""
    monkeypatch.setattr(writer, "sets_times_at_once", lambda fd: False)
    log = record(exits=5)
    file = journal_of(log) if which == "journal" else Path(log.path)
    before_ns = time.monotonic_ns()
    while time.monotonic_ns() < before_ns + 2 * writer._CLOCK_TOLERANCE_NS:
        touched(file)
    assert log.objection() == ""
    with file.open("ab") as opened:
        opened.write(b"x")
    assert log.objection()
    log.restore()
    log.close()


def test_what_cant_be_written_anew_takes_no_event_until_it_can(
    log: SessionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal_of(log).unlink()
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", refuse)
        for _ in range(2):
            with pytest.raises(StoreError, match=r"can't rewrite the event log .*: no"):
                log.restore()
        with pytest.raises(StoreError, match="can't rewrite the event log"):
            log.append("process_exited", 1, {}, 1)
    assert os.listdir(folder(log)) == ["s1.db"]
    log.restore()
    log.append("process_exited", 1, {}, 1)
    log.close()
    assert seqs_of(log) == [1, 2, 3, 4, 5, 6, 7]


def test_a_log_that_is_lost_in_the_end_is_no_clean_end(
    log: SessionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal_of(log).unlink()
    monkeypatch.setattr(os, "rename", refuse)
    with pytest.raises(StoreError, match="could not be written"):
        log.close()


def test_a_log_that_ends_where_its_path_doesnt_lead_says_where(
    log: SessionLog, tmp_path: Path
) -> None:
    folder(log).rename(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match=r"was moved to .*/elsewhere"):
        log.close()
    assert os.listdir(tmp_path / "elsewhere") == ["s1.db"]


def refuse(*_path: object, **_more: object) -> None:
    raise OSError(1, "no")


class Swaps:
    """Puts a file of its own in the place of one that has a name for a moment."""

    def __init__(self, deed: Callable[[str], None], times: int) -> None:
        self.deed = deed
        self.left = times

    def __call__(self, path: str) -> None:
        if ".new-" in path and self.left:
            self.left -= 1
            self.deed(path)


def replace(path: str) -> None:
    Path(f"{path}.evil").write_bytes(b"")
    os.replace(f"{path}.evil", path)


def give_another_name(path: str) -> None:
    os.link(path, f"{path}.another")


def fill(path: str) -> None:
    """With a table of his own."""
    with closing(sqlite3.connect(path)) as opened:
        opened.execute("CREATE TABLE more (x)")


def before_it_is_opened(monkeypatch: pytest.MonkeyPatch, swaps: Swaps) -> None:
    def swapped(path: str, fd: int) -> sqlite3.Connection:
        swaps(path)
        return open_new_database(path, fd)

    monkeypatch.setattr(database, "open_new_database", swapped)


def before_it_is_put(monkeypatch: pytest.MonkeyPatch, swaps: Swaps, folder: Path) -> None:
    rename = os.rename

    def swapped(source: str, target: str, **folders: int) -> None:
        swaps(str(folder / source))
        rename(source, target, **folders)

    monkeypatch.setattr(os, "rename", swapped)


@pytest.mark.parametrize("deed", [replace, give_another_name, fill])
def test_a_database_that_is_swapped_before_it_is_opened_is_made_again_or_nothing_is_run(
    record: Recorder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deed: Callable[[str], None]
) -> None:
    swaps = Swaps(deed, 3)
    before_it_is_opened(monkeypatch, swaps)
    log = record(exits=5)
    assert swaps.left == 0
    log.close()
    assert seqs_of(log) == [1, 2, 3, 4, 5, 6]
    assert not journal_of(log).exists()
    shutil.rmtree(folder(log))
    swaps.left = 99  # each time
    with pytest.raises(StoreError, match=r"can't create the event log .*: another program"):
        record()
    left = [path.name for path in (tmp_path / "sessions").iterdir()]
    assert [name for name in left if not name.endswith((".another", "-journal"))] == []


def test_what_is_swapped_before_it_gets_its_name_is_put_there_again(
    log: SessionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal_of(log).unlink()
    swaps = Swaps(replace, 3)
    before_it_is_put(monkeypatch, swaps, folder(log))
    log.restore()
    assert (swaps.left, log.objection()) == (0, "")
    swaps.left = 3
    log.close()
    assert swaps.left == 0
    assert seqs_of(log) == [1, 2, 3, 4, 5, 6]
    assert not journal_of(log).exists()


def test_where_others_are_quicker_each_time_the_journal_is_kept_and_that_is_said(
    log: SessionLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    before_it_is_put(monkeypatch, Swaps(replace, 99), folder(log))
    with pytest.raises(StoreError, match=r"another program changed .*; its journal is complete"):
        log.close()
    assert Path(log.path).read_bytes() == b""
    assert seqs_of(log) == [1, 2, 3, 4, 5, 6]


def test_a_process_that_has_opened_the_database_in_time_writes_nothing_unseen(
    record: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[int] = []
    swaps = Swaps(lambda path: held.append(os.open(path, os.O_PATH)), 1)
    before_it_is_opened(monkeypatch, swaps)
    log = record(exits=5)
    log.index_rows(3)
    with open(f"/proc/self/fd/{held[0]}", "r+b") as file:
        file.write(b"x" * 4096)
    log.index_rows()
    with pytest.raises(StoreError, match=r"another program wrote to .*; its journal is complete"):
        log.close()
    os.close(held[0])
    assert seqs_of(log) == [1, 2, 3, 4, 5, 6]
