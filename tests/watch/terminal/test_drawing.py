"""Rows for terminals of any size."""

from __future__ import annotations

import itertools

from sigwrap.control.killswitch import State
from sigwrap.report.forms.layout import columns_of
from sigwrap.watch.board import ENDED, Board, EventLine
from sigwrap.watch.terminal.drawing import Size, drawn
from sigwrap.watch.terminal.state import ScreenState
from tests.watch.boards import NOW_NS, board, line, request, seen

WIDE = Size(80, 24)
EVIL = "\x1b[2J\x1b]0;x\x07<script>\u202e\n\x9b31m\udcff漢" * 20


def shown(
    found: Board,
    *keys: str,
    size: Size = WIDE,
    lines: tuple[EventLine, ...] = (),
    state: ScreenState | None = None,
) -> list[str]:
    state = state or ScreenState()
    state.take(found)
    for at, key in enumerate(keys):
        state.press(key, 10.0 + at)
    whole = "sigwrap watch --full 3f9a10"
    return [row.text.rstrip() for row in drawn(state, lines, size, NOW_NS, whole)]


def test_what_an_answer_needs_is_there() -> None:
    text = "\n".join(shown(board(seen(), waiting=(request(),))))
    for part in (
        "1 session, 1 approval request   kill switch off",
        "> s1       waiting  1 min  7      2       npm start",
        "3f9a10  node (pid 4711, depth 2) wants to run git push --force",
        "file /usr/bin/git",
        "directory /home/me/project",
        "rule ask-push, policy mine: pushes are looked at",
        "session s1; expires in 59 s, at ",
        "y approve  a session  n deny  m message",
    ):
        assert part in text, text


def test_one_session_is_marked_without_colour_too() -> None:
    rows = shown(board(seen(), seen("s2", state=ENDED, exit_status=3, processes=None)), "tab")
    assert any(row.startswith("> s2 ") and "exit 3" in row for row in rows)
    assert any(row.startswith("  s1 ") for row in rows)


def test_events_are_filtered_and_the_last_ones_stay() -> None:
    lines = tuple(line(at, "denied" if at % 2 else "allowed", f"event {at}") for at in range(200))
    text = "\n".join(shown(board(seen()), lines=lines))
    assert "event 199" in text
    assert "event 198" not in text
    assert "event 1\n" not in text


def test_a_question_that_does_not_fit_says_so_and_v_shows_all() -> None:
    long = request(what=" ".join(f"word{at}" for at in range(400)))
    state = ScreenState()
    rows = shown(board(seen(), waiting=(long,)), state=state)
    assert state.does_not_fit
    assert any("more rows: press v" in row for row in rows)
    whole = shown(board(seen(), waiting=(long,)), "v", state=state)
    assert "more rows below (press space)" in whole[0]
    end = shown(board(seen(), waiting=(long,)), *[" "] * 30, state=state)
    assert any("word399" in row for row in end)
    assert not any("below" in row for row in end)


def test_no_yes_where_the_question_was_not_drawn_whole() -> None:
    for size in (Size(200, 9), Size(39, 50), Size(40, 10)):
        state = ScreenState()
        long = request(what=" ".join(f"word{at}" for at in range(400)))
        shown(board(seen(), waiting=(long,)), size=size, state=state)
        assert state.press("y", 10.0) is None
        state.press("v", 11.0)
        shown(board(seen(), waiting=(long,)), size=size, state=state)
        assert state.press("y", 12.0) is None


def test_the_kill_switch_and_what_can_t_be_seen() -> None:
    found = board(
        killswitch=State(NOW_NS, "it deletes things", "me"), problems=("session x hung up",)
    )
    text = "\n".join(shown(found))
    assert "KILL SWITCH ON" in text
    assert "it deletes things" in text
    assert "incomplete: session x hung up" in text


def test_nothing_is_wider_or_longer_or_moves_the_cursor() -> None:
    evil = request(what=EVIL, process=EVIL, files=(EVIL,) * 9, folder=EVIL, rule=EVIL, message=EVIL)
    found = board(
        seen(name=EVIL, command=(EVIL,), ended=EVIL),
        seen("s2", last=EVIL),
        waiting=(evil, request("b", what=EVIL)),
        killswitch=State(NOW_NS, EVIL, EVIL),
        problems=("x" * 500,),
    )
    sizes = itertools.product((2, 20, 40, 79, 80, 200), (1, 5, 10, 24, 60))
    for (columns, rows), key in itertools.product(sizes, ("", "?", "v", "m", "K", "s")):
        state = ScreenState()
        state.status = "y" * 300
        found_rows = shown(found, *([key] if key else []), size=Size(columns, rows), state=state)
        assert len(found_rows) <= rows
        for row in found_rows:
            assert columns_of(row) <= columns
            assert row.isprintable()
            assert "\u202e" not in row
