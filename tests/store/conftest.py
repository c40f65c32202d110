from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from sigwrap.errors import StoreError
from sigwrap.log.reader import Session
from sigwrap.log.writer import SessionLog

Recorder = Callable[..., SessionLog]


@pytest.fixture
def record(tmp_path: Path) -> Iterator[Recorder]:
    """A log with session_started and so many exits, open until the test closes it or ends."""
    made: list[SessionLog] = []

    def make(
        session_id: str = "s1",
        exits: int = 3,
        *,
        name: str = "",
        inside: str = "",
        missing: tuple[str, ...] = (),
        start_ns: int = 1,
        **options: object,
    ) -> SessionLog:
        log = SessionLog.create(str(tmp_path), session_id, **options)  # type: ignore[arg-type]
        session = {"session_id": session_id, "name": name, "keyed": False, "inside": inside}
        session |= {"command": ["npm", "start"], "missing": list(missing)}
        made.append(log)
        log.append("session_started", 1, session, start_ns)
        for number in range(exits):
            log.append("process_exited", 100 + number, {"exit_code": 0}, start_ns + number + 1)
        return log

    yield make
    for log in filter(is_open, made):
        with suppress(StoreError):
            log.close()


@pytest.fixture
def log(record: Recorder) -> SessionLog:
    return record()


def is_open(log: SessionLog) -> bool:
    try:
        log._database._connection.execute("SELECT 1")
    except sqlite3.ProgrammingError:
        return False
    return True


def journal_of(log: SessionLog) -> Path:
    return Path(log.path.replace(".db", ".journal"))


def seqs_of(log: SessionLog) -> list[int]:
    """As a reader sees them."""
    return [row.seq for row in Session("s1", log.path).rows()]


def leave_as_killed(log: SessionLog) -> None:
    """As SIGKILL does: the kernel closes what the writer had open."""
    os.close(log._journal.fd)
    log._database.close()
    log._folder.close()
