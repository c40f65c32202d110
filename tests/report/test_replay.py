from __future__ import annotations

import pytest

from sigwrap.cli.replay import in_rhythm, recorded, state_after, timeline_line
from sigwrap.errors import StoreError
from sigwrap.events import Event, io_payload
from sigwrap.report.folds.ending import Ending
from tests.report.conftest import STARTED_NS, Scenario


def event_at(time_ns: int) -> Event:
    return Event(seq=1, time_ns=time_ns, type="t", pid=1, payload={}, hash="")


def test_pauses_are_those_of_the_run_divided_by_the_speed() -> None:
    slept: list[float] = []
    events = [event_at(ns) for ns in (0, 2_000_000_000, 2_000_000_000, 1, 500_000_001)]
    assert list(in_rhythm(events, 4.0, slept.append)) == events
    assert slept == [0.5, 0.125]  # a clock that was set back is no pause
    slept.clear()
    assert list(in_rhythm([event_at(0), event_at(10**18)], 0.01, slept.append))
    assert slept == [10.0]


def test_the_state_at_a_moment_is_the_fold_so_far(made: Scenario) -> None:
    made.execute(10, 1, "make")
    seq = made.execute(11, 10, "cc")
    made.exit(11)
    made.exit(10)
    made.end()
    summary = state_after(made.session.events(), seq)
    assert (summary.ending, summary.events, summary.processes.running) == (Ending.MOMENT, 3, 2)
    whole = state_after(made.session.events(), 1_000)
    assert (whole.ending, whole.processes.running) == (Ending.ENDED, 0)


def test_each_event_is_one_line(made: Scenario) -> None:
    made.execute(10, 1, "sh", "-c", "echo \x1b[1m\n")
    made.signal("SIGTERM", "node", "npm", "parent")
    made.exit(10, 0)
    made.add("process_exited", 11, comm="x" * 1_000, exit_code=0, signal_name=None)
    lines = [timeline_line(event, STARTED_NS) for event in made.session.events()]
    assert lines[1:4] == [
        "     2   +1.000000 s  exec_audited              10  "
        "sh -c $'echo \\e[1m\\n'  (rule builtin:record)",
        "     3   +2.000000 s  signal_sent               10  "
        "SIGTERM to npm (11, parent)  from node  (rule ?)",
        "     4   +3.000000 s  process_exited            10  comm  exit 0",
    ]
    assert all(line.isprintable() and len(line) < 500 for line in lines)
    assert lines[0].endswith("  npm start  in /project  under builtin:record")


def test_recorded_bytes_come_back_as_they_were() -> None:
    pieces = [b"text\n", "é\x1b[0m".encode(), b"\xff\x00", b"\0" * 5, bytes(range(256))]
    made = [
        Event(seq, seq, "io_recorded", 7 + seq % 2, io_payload("stdout", 0, piece), "")
        for seq, piece in enumerate(pieces)
    ]
    assert list(recorded(made, "stdout", None)) == pieces
    assert list(recorded(made, "stdout", 8)) == pieces[1::2]
    assert list(recorded(made, "stderr", None)) == []
    bad = made[0]._replace(payload={"stream": "stdout", "base64": "="})
    with pytest.raises(StoreError, match="row 0"):
        list(recorded([bad], "stdout", None))
