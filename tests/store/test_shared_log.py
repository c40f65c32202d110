"""A log to which one process after the other appends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from sigwrap.errors import StoreError
from sigwrap.log.catalog import open_session, recover, session_ids, stored_files
from sigwrap.log.journal import append_in_turn
from sigwrap.report.check.verify import verify_session

START = {"kind": "hook", "command": ["sigwrap", "hook", "codex"]}


def add(store: Path, what: str, key: bytes | None = None) -> str:
    event = ("tool_call_judged", {"what": what, "answer": "deny"})
    return append_in_turn(str(store), "hook-1", key, {**START, "keyed": key is not None}, event)


def told(store: Path, session_id: str = "hook-1") -> list[str]:
    session = open_session(str(store), session_id)
    assert verify_session(session, None).problem == ""
    return [str(event.payload.get("what", event.type)) for event in session.events()]


def test_the_first_event_starts_it(tmp_path: Path) -> None:
    assert add(tmp_path, "ls") == add(tmp_path, "cat x") == "hook-1"
    assert told(tmp_path) == ["session_started", "ls", "cat x"]
    journal = tmp_path / "sessions" / "hook-1.journal"
    assert journal.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_what_a_killed_process_left_of_an_event_is_cut(tmp_path: Path, kept: int) -> None:
    for what in ("a", "b"):
        add(tmp_path, what)
    journal = tmp_path / "sessions" / "hook-1.journal"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:kept]) + lines[kept][:-9])
    add(tmp_path, "c")
    assert told(tmp_path) == [*["session_started", "a"][: max(kept, 1)], "c"]


def test_a_log_that_was_merged_or_removed_gets_no_more(tmp_path: Path) -> None:
    add(tmp_path, "a")
    recover(str(tmp_path), "hook-1", stored_files(str(tmp_path)))
    assert add(tmp_path, "b") == add(tmp_path, "c") == "hook-1-2"
    assert told(tmp_path) == ["session_started", "a"]
    assert told(tmp_path, "hook-1-2") == ["session_started", "b", "c"]
    for name in os.listdir(tmp_path / "sessions"):
        (tmp_path / "sessions" / name).unlink()
    assert add(tmp_path, "d") == "hook-1"
    assert session_ids(str(tmp_path)) == ["hook-1"]


def test_a_journal_that_is_no_file_of_the_user_is_refused(tmp_path: Path) -> None:
    add(tmp_path, "a")
    journal = tmp_path / "sessions" / "hook-1.journal"
    journal.rename(tmp_path / "elsewhere")
    for is_link in (True, False):
        if is_link:
            journal.symlink_to(tmp_path / "elsewhere")
        else:
            os.mkfifo(journal)
        with pytest.raises(StoreError, match="can't write the event log hook-1 in "):
            add(tmp_path, "b")
        journal.unlink()


def test_a_key_makes_the_chain_a_keyed_one(tmp_path: Path) -> None:
    for what in ("a", "b"):
        add(tmp_path, what, key=b"k")
    session = open_session(str(tmp_path), "hook-1")
    assert verify_session(session, b"k").problem == ""
    assert verify_session(session, b"other").problem != ""


def test_a_lock_that_another_process_keeps_is_no_wait_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each process that may read the journal can lock it."""
    add(tmp_path, "a")
    monkeypatch.setattr("sigwrap.log.journal._LOCKED_WITHIN_S", 0.1)
    with open(tmp_path / "sessions" / "hook-1.journal", "rb") as journal:
        fcntl.flock(journal, fcntl.LOCK_SH)
        with pytest.raises(StoreError, match="another process has locked the journal"):
            add(tmp_path, "b")
    add(tmp_path, "c")
    assert told(tmp_path) == ["session_started", "a", "c"]


def test_a_long_torn_line_costs_no_earlier_event(tmp_path: Path) -> None:
    add(tmp_path, "a")
    journal = tmp_path / "sessions" / "hook-1.journal"
    whole = journal.read_bytes()
    journal.write_bytes(whole + b"x" * 70_000)
    with pytest.raises(StoreError, match="its last line is too long"):
        add(tmp_path, "b")
    journal.write_bytes(whole)
    assert told(tmp_path) == ["session_started", "a"]
