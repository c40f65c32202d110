from __future__ import annotations

import re

import pytest

from sigwrap.log.catalog import SessionFile, StoredFile
from sigwrap.report.forms.layout import Style, columns_of
from sigwrap.report.forms.sessions import Reader, render_sessions

SECOND = 1_000_000_000
NOW_NS = 1_763_705_000 * SECOND
PIPE = Reader(now_ns=NOW_NS, user="ann", host="box", utc=True)


def session(**known: object) -> SessionFile:
    usual = {"id": "20251121-060320-abcdef", "path": "/s1.db", "running": False, "events": 2}
    by = {"user": "ann", "host": "box", "started_ns": NOW_NS - 3 * 3600 * SECOND}
    return SessionFile(**{**usual, **by, **known})  # type: ignore[arg-type]


def of_size(size: int) -> tuple[StoredFile, ...]:
    return (StoredFile("sessions", "s1.db", "s1", True, size, 0.0),)


def terminal(columns: int, *, colour: bool = False) -> Reader:
    return Reader(
        now_ns=NOW_NS, columns=columns, user="ann", host="box", style=Style(colour=colour)
    )


def test_a_line_tells_when_how_it_ended_how_large_and_what() -> None:
    ended = session(
        command=("npm", "start"), exit_status=130, denied=4, files=of_size(17_000), name="demo"
    )
    heading, line = render_sessions([ended], PIPE).splitlines()
    assert heading.split() == "SESSION NAME STARTED AGE ENDED DENIED SIZE COMMAND".split()
    assert " ".join(line.split()) == (
        "20251121-060320-abcdef demo 2025-11-21 03:03:20 UTC 3 h ago exit 130 4 17K npm start"
    )
    assert re.search(r"did not end cleanly +\? +0B", render_sessions([session()], PIPE))
    _, narrow = render_sessions([ended], terminal(80)).splitlines()
    assert "  exit 130, 4 denied  17K" in narrow


@pytest.mark.parametrize(
    ("known", "ending"),
    [
        ({"running": True}, "running for 3 h"),
        ({"running": True, "is_stopped": True}, "stopped"),
        ({}, "did not end cleanly"),
        ({"exit_status": 0}, "exit 0"),
        ({"running": True, "problem": "nothing was recorded", "events": 0}, "starting"),
    ],
)
def test_endings_are_told_apart(known: dict[str, object], ending: str) -> None:
    assert f"  {ending}  " in render_sessions([session(**known)], PIPE) + "  "


def test_one_that_can_t_be_read_says_why() -> None:
    shown = render_sessions([session(problem="its \x1b is wrong", events=0)], PIPE)
    assert re.search(r"  unreadable +\? +0B +its \\e is wrong$", shown)


def test_who_and_where_is_said_only_where_it_was_another() -> None:
    lines = [
        render_sessions([session(command=("true",), **by)], PIPE).splitlines()[1]
        for by in ({}, {"user": "root"}, {"host": "other"})
    ]
    assert [line.partition("  true")[2] for line in lines] == [
        "",
        "  by root@box",
        "  by ann@other",
    ]


def test_a_session_that_joined_another_says_so() -> None:
    joined = session(command=("true",), inside="s\x1b0", exit_status=0)
    assert render_sessions([joined], PIPE).endswith("  true  inside s\\e0")


@pytest.mark.parametrize("columns", [40, 80, 109, 110, 200])
def test_on_a_terminal_no_line_is_longer_than_it_is_wide(columns: int) -> None:
    sessions = [
        session(command=("npm", "x" * 300), name="a name" * 9, exit_status=1),
        session(id="x" * 300, command=("\u4e00" * 200,), running=True),
        session(problem="p" * 300),
    ]
    shown = render_sessions(sessions, terminal(columns)).splitlines()
    assert len(shown) == 4
    assert shown[0].split()[0] == "SESSION"
    assert max(map(columns_of, shown)) <= columns
    assert "x" * 300 in render_sessions(sessions, PIPE)


def test_eighty_columns_have_room_for_the_command() -> None:
    shown = render_sessions(
        [session(command=("npm", "start"), name="demo", files=of_size(10**6))], terminal(80)
    )
    assert shown.splitlines()[1] == (
        "20251121-060320-abcdef  3 h ago  did not end cleanly  977K  (demo) npm start"
    )


def test_colour_is_for_what_asks_for_a_look() -> None:
    sessions = [session(exit_status=0), session(exit_status=1), session(running=True), session()]
    _, *lines = render_sessions(sessions, terminal(200, colour=True)).splitlines()
    assert ["\x1b[" in line for line in lines] == [False, True, False, True]
    assert "\x1b[1;31mexit 1\x1b[0m" in lines[1]


def test_a_hostile_command_stays_one_line() -> None:
    evil = session(command=("\x1b[2J\n", "x" * 30_000), name="\u202e", id="\n\x1b")
    shown = render_sessions([evil], PIPE)
    assert all(line.isprintable() for line in shown.splitlines())
    assert len(shown.splitlines()) == 2
    assert len(shown) < 11_000


def test_an_empty_store_is_said() -> None:
    assert render_sessions([], PIPE) == "no sessions yet"
