from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from sigwrap.store.writer import SessionLog

Recorder = Callable[..., SessionLog]


def started(
    session_id: str,
    name: str = "",
    inside: str = "",
    missing: tuple[str, ...] = (),
    *,
    keyed: bool = False,
) -> dict[str, object]:
    session = {"session_id": session_id, "name": name, "inside": inside, "missing": list(missing)}
    return {**session, "command": ["npm", "start"], "keyed": keyed}


@pytest.fixture
def record(tmp_path: Path) -> Recorder:
    """A log with session_started and so many exits, still open."""

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
        keyed = options.get("key") is not None
        first = started(session_id, name, inside, missing, keyed=keyed)
        log.append("session_started", 1, first, start_ns)
        for number in range(exits):
            log.append("process_exited", 100 + number, {"exit_code": 0}, start_ns + number + 1)
        return log

    return make


def leave_as_killed(log: SessionLog) -> None:
    """As SIGKILL does: the kernel closes what the writer had open."""
    os.close(log._journal._fd)
    log._let_go_of_database()
    log._folder.close()
