from __future__ import annotations

import pytest

from sigwrap.report.sessions import render_sessions
from sigwrap.store.catalog import SessionFile


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sigwrap.report.sessions.local_time", lambda time_ns: f"T{time_ns}")


def session(**known: object) -> SessionFile:
    return SessionFile(**{"id": "s1", "path": "/s1.db", "running": False, **known})  # type: ignore[arg-type]


def test_a_session_that_joined_another_says_so() -> None:
    joined = session(command=("true",), inside="s\x1b0", events=2, exit_status=0)
    assert render_sessions([joined]).endswith("  2 events  true  inside s\\e0")


def test_one_line_tells_when_how_long_what_and_how_it_ended() -> None:
    ended = session(
        command=("npm", "start"),
        name="demo",
        started_ns=1,
        last_event_ns=2_000_000_001,
        events=7,
        exit_status=130,
    )
    assert render_sessions([ended]) == (
        "s1  T1  exit status 130              2.00 s         7 events  npm start  (demo)"
    )


def test_endings_are_told_apart() -> None:
    shown = render_sessions(
        [
            session(running=True, events=1),
            session(events=1),
            session(problem="nothing was recorded"),
            session(problem="nothing was recorded", running=True),
        ]
    ).splitlines()
    assert "running" in shown[0]
    assert "did not end cleanly" in shown[1]
    assert shown[2] == "s1  nothing was recorded"
    assert shown[3] == "s1  starting"


def test_a_long_command_is_cut() -> None:
    shown = render_sessions([session(command=(length * "x",), events=1) for length in (100, 101)])
    assert [line.rpartition("  ")[2] for line in shown.splitlines()] == [
        "x" * 100,
        "x" * 100 + "...",
    ]


def test_a_hostile_command_stays_one_short_line() -> None:
    evil = session(command=("\x1b[2J\n", "x" * 1_000), name="\u202e", events=1)
    shown = render_sessions([evil])
    assert shown.isprintable()
    assert len(shown) < 250


def test_an_empty_store_is_said() -> None:
    assert render_sessions([]) == "no sessions yet"
