from __future__ import annotations

import os
import resource
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from sigwrap.errors import StoreError
from sigwrap.log import writer
from sigwrap.log.reader import Session
from sigwrap.log.writer import SessionLog
from sigwrap.report.check.verify import Outcome, verify_session

FULL = 1 << 20


def begin(store: str) -> SessionLog:
    log = SessionLog.create(store, "s1")
    log.append("session_started", 1, {"session_id": "s1", "keyed": False}, 1)
    return log


def append_until_full(log: SessionLog) -> None:
    for _ in range(FULL):
        log.append("process_exited", 1, {"comm": "x" * 700}, 1)


def assert_holds(log: SessionLog, events: int) -> None:
    session = Session("s1", log.path)
    assert [event.seq for event in session.events()] == list(range(1, events + 1))
    verification = verify_session(session, None, expected_head=log.head)
    assert (verification.outcome, verification.problem) == (Outcome.INTACT, "")


def test_on_a_full_disk_an_event_is_refused_and_nothing_torn(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "INDEX_RETRY_NS", 0)
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 200_000)
    log = begin(str(small_disk))
    with pytest.raises(StoreError, match=r"can't write the event log .*s1\.journal.*free disk"):
        append_until_full(log)
    recorded = log.seq
    with pytest.raises(StoreError):
        log.append("process_exited", 1, {"comm": "y" * 5_000}, 1)
    assert log.index_rows() == recorded  # the database has no room either
    assert_holds(log, recorded)

    ballast.unlink()
    log.append("process_exited", 1, {"comm": "y" * 5_000}, 1)
    log.index_rows()
    log.close()
    assert_holds(log, recorded + 1)


@pytest.mark.fault(
    "the store",
    "disk full at the end",
    sees="nothing",
    keeps="complete",
)
def test_a_session_that_ends_on_a_full_disk_is_whole(small_disk: Path) -> None:
    log = begin(str(small_disk))
    with pytest.raises(StoreError):
        append_until_full(log)
    log.close()
    assert os.path.exists(log.path.replace(".db", ".journal"))
    assert_holds(log, log.seq)
    assert not Session("s1", log.path).running


def test_on_a_full_disk_no_session_begins_and_no_file_is_left(small_disk: Path) -> None:
    (small_disk / "store" / "sessions").mkdir(parents=True)
    with pytest.raises(OSError, match="No space left"), open(small_disk / "ballast", "wb") as file:
        while True:
            file.write(b"x" * 4096)
            file.flush()
    with pytest.raises(StoreError, match=r"can't create the event log .*s1\.db.*--store"):
        SessionLog.create(str(small_disk / "store"), "s1")
    assert os.listdir(small_disk / "store" / "sessions") == []


def test_a_file_size_limit_is_met_like_a_full_disk(tmp_path: Path) -> None:
    """Needs no privilege; unlike most full disks it takes a part of the line first."""

    def meet_the_limit() -> None:
        log = begin(str(tmp_path))
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
        with pytest.raises(StoreError, match="can't write the event log"):
            append_until_full(log)
        assert os.stat(log.path.replace(".db", ".journal")).st_size < 50_000
        with pytest.raises(StoreError):
            log.append("process_exited", 1, {"comm": "x" * 700}, 1)
        assert_holds(log, log.seq)
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        log.append("process_exited", 1, {"comm": "x" * 700}, 1)
        log.close()
        assert_holds(log, log.seq)

    in_child(meet_the_limit)


def in_child(action: Callable[[], None]) -> None:
    pid = os.fork()
    if pid == 0:
        try:
            action()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
