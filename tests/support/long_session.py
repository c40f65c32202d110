"""A log as long as one likes, by sigwrap's own writer, of what a recorded session has in it.

The recorded session happens over and over, under the same COMMAND, with other processes and other
words each time: what costs a reader memory is what differs.
`python -m tests.support.long_session STORE EVENTS` makes one to look at.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryDirectory

from sigwrap.events import Event, Payload
from sigwrap.log.catalog import open_session
from sigwrap.log.writer import SessionLog

DEMO = Path(__file__).parents[2] / "demo" / "agent-session.sh"
SIGWRAP = Path(sys.executable).with_name("sigwrap")

_WORDS = ("basket", "receipt", "left-pad", "127.0.0.1:9/")
_KINDS_OF_EACH = 1_000
_PIDS = ("ppid", "source_pid", "target_pid", "stub_pid")
_FIRST_PID = 1_000
_MAX_PID = 1 << 22  # the kernel's, on 64 bits: then numbers come again
_ANSWER_CHARACTERS = 6


def recorded_demo(folder: Path, sigwrap: Path = SIGWRAP) -> list[Event]:
    """Takes a second."""
    inside = ("SIGWRAP_SESSION", "SIGWRAP_STORE")
    environment = {name: value for name, value in os.environ.items() if name not in inside}
    environment |= {"SIGWRAP": str(sigwrap), "TMPDIR": str(folder)}
    line = ["sh", str(DEMO), str(folder / "recorded")]
    subprocess.run(line, env=environment, capture_output=True, check=True, timeout=60)
    return list(open_session(str(folder / "recorded"), "agent").events())


def make_long(store: Path, session_id: str, recorded: Sequence[Event], events: int) -> str:
    """Its path. Of a clean session with so many events, three at least."""
    began, *_, ended = recorded
    command = began.payload["command_pid"]
    exited = next(e for e in recorded if e.type == "process_exited" and e.pid == command)
    log = SessionLog.create(str(store), session_id, key=None)
    counts: Counter[str] = Counter()

    def append(kind: str, pid: int, payload: Payload, time_ns: int) -> None:
        if log.wants_indexing:
            log.index_rows()
        log.append(kind, pid, payload, time_ns)
        counts[kind] += 1

    now_ns = began.time_ns
    append(began.type, began.pid, {**began.payload, "session_id": session_id}, now_ns)
    for event in islice(_over_and_over(recorded), events - 3):
        now_ns = event.time_ns
        append(event.type, event.pid, event.payload, now_ns)
    append(exited.type, exited.pid, exited.payload, now_ns)
    totals = {"duration_ns": now_ns - began.time_ns, "counts": dict(counts), "head": log.head}
    append(ended.type, ended.pid, {**ended.payload, **totals}, now_ns)
    log.close()
    return log.path


def _over_and_over(recorded: Sequence[Event]) -> Iterator[Event]:
    began, *between, ended = recorded
    command = began.payload["command_pid"]
    between = [e for e in between if (e.type, e.pid) != ("process_exited", command)]
    texts = [json.dumps(e.payload) for e in between]
    session = {e.pid for e in between} - {began.pid, command}
    lowest, span = min(session), max(session) - min(session) + 1
    for turn in count():
        offset_ns = turn * (ended.time_ns - began.time_ns)
        words = [(word, f"{word}{turn % _KINDS_OF_EACH}") for word in _WORDS]

        def of_this_turn(pid: int, turn: int = turn) -> int:
            if pid not in session:
                return pid
            return _FIRST_PID + (pid - lowest + turn * span) % (_MAX_PID - _FIRST_PID)

        for event, text in zip(between, texts, strict=True):
            for word, other in words:
                text = text.replace(word, other)
            payload = json.loads(text)
            for name in _PIDS:
                if name in payload:
                    payload[name] = of_this_turn(payload[name])
            if "approval_id" in payload:
                both = f"{payload['approval_id']}{turn}".encode()
                payload["approval_id"] = sha256(both).hexdigest()[:_ANSWER_CHARACTERS]
            pid, time_ns = of_this_turn(event.pid), event.time_ns + offset_ns
            yield event._replace(pid=pid, payload=payload, time_ns=time_ns)


def main(store: str, events: str) -> None:
    with TemporaryDirectory() as folder:
        path = make_long(Path(store), "long", recorded_demo(Path(folder)), int(events))
    sys.stdout.write(path + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
