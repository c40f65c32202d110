"""The writer is killed at any moment: what it acknowledged is in the log, and the log verifies."""

from __future__ import annotations

import os
import random
import signal
import struct
from pathlib import Path

import pytest

from sigwrap.log.catalog import list_sessions, open_session
from sigwrap.log.writer import SessionLog
from sigwrap.report.check.verify import Outcome, verify_session

pytestmark = pytest.mark.tier("ci")

ROUNDS = 40
KEY = b"secret"


@pytest.mark.parametrize("number", range(ROUNDS))
def test_what_a_killed_writer_acknowledged_is_in_the_log(tmp_path: Path, number: int) -> None:
    chance = random.Random(number)
    acks_before_kill = chance.randrange(1, 1_500)
    key = KEY if number % 4 == 0 else None
    comm = "x" * chance.choice((10, 3_000))
    index_at = chance.choice((1, 7, 256))
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        _append_until_killed(str(tmp_path), writing, key, comm, index_at)
    os.close(writing)
    acknowledged = _read_acks(reading, acks_before_kill)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    # What was still in the pipe was acknowledged as well.
    acknowledged = max(acknowledged, _read_acks(reading, 1 << 60))
    os.close(reading)

    session = open_session(str(tmp_path), "")
    events = list(session.events())
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    # One event more may be recorded whose acknowledgement was not sent yet.
    assert len(events) - acknowledged in (0, 1)
    assert [event.payload.get("n") for event in events[1:]] == [event.seq for event in events[1:]]
    verification = verify_session(session, key)
    assert (verification.outcome, verification.problem) == (Outcome.INTACT, "")
    assert not verification.ended
    (listed,) = list_sessions(str(tmp_path))
    assert (listed.running, listed.ended_cleanly, listed.events) == (False, False, len(events))


def _append_until_killed(
    store: str, ack_fd: int, key: bytes | None, comm: str, index_at: int
) -> None:
    try:
        log = SessionLog.create(store, "s1", key=key)
        payload: dict[str, object] = {"session_id": "s1", "keyed": key is not None}
        log.append("session_started", 1, payload, 1)
        while True:
            os.write(ack_fd, struct.pack("<q", log.seq))
            log.append("process_exited", 1, {"n": log.seq + 1, "comm": comm}, log.seq)
            if log.pending >= index_at:
                log.index_rows()
                log.checkpoint()
    finally:
        os._exit(1)


def _read_acks(fd: int, wanted: int) -> int:
    """The last of so many acknowledgements, or of all until the end."""
    last = 0
    data = b""
    while wanted > 0 and (chunk := os.read(fd, 8 * min(wanted, 4_096))):
        data += chunk
        whole = len(data) // 8
        if whole:
            (last,) = struct.unpack_from("<q", data, 8 * (whole - 1))
        data = data[8 * whole :]
        wanted -= whole
    return last
