"""What SIGUSR2 tells where it can save nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from sigwrap.errors import StoreError
from sigwrap.log.catalog import open_session
from sigwrap.log.writer import SessionLog
from sigwrap.session.diagnosis import Diagnostic
from sigwrap.session.recorder import Recorder
from tests.support.stand_in import session_of


def test_where_there_can_be_no_checkpoint_an_event_and_a_line_say_why(tmp_path: Path) -> None:
    said: list[str] = []
    log = SessionLog.create(str(tmp_path), "s1")
    recorder = Recorder(log, said.append, 1 << 20)
    recorder.record("session_started", 1, {"session_id": "s1", "keyed": False})
    diagnostic = Diagnostic(session_of(recorder=recorder))
    (tmp_path / "checkpoints").write_text("a file")
    with pytest.raises(StoreError, match="can't write the checkpoint"):
        diagnostic.save()
    error = list(open_session(str(tmp_path), "s1").events())[-1].payload["error"]
    assert "can't write the checkpoint s1-1.db: " in error
    assert said == [error]
    assert recorder.record("process_exited", 1, {})
    log.close()
