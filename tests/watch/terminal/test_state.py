"""What a key does."""

from __future__ import annotations

import pytest

from sigwrap.watch.board import (
    ENDED,
    Approve,
    Board,
    Deny,
    Interrupt,
    KillAll,
    Order,
)
from sigwrap.watch.terminal.state import READ_WITHIN_S, Command, Mode, ScreenState, Shows
from tests.watch.boards import board, line, request, seen

READ_S = READ_WITHIN_S + 0.1


USUAL = board(seen(), seen("s2"), waiting=(request(), request("b")))


def state(shown: Board = USUAL) -> ScreenState:
    found = ScreenState()
    show(found, shown, 0.0)
    return found


def show(subject: ScreenState, seen_now: Board, now_s: float) -> None:
    """Show a board on a screen with room for it."""
    subject.take(seen_now)
    subject.does_not_fit = False
    subject.note_drawn(now_s)


def pressed(subject: ScreenState, keys: str, now_s: float = READ_S) -> Order | Command | None:
    wish: Order | Command | None = None
    for key in keys.split(" ") if " " in keys else keys:
        wish = subject.press(key, now_s)
    return wish


@pytest.mark.parametrize(
    ("keys", "wish"),
    [
        ("y", Approve("s1", "3f9a10", False)),
        ("a", Approve("s1", "3f9a10", True)),
        ("n", Deny("s1", "3f9a10", "")),
        ("m n o t enter", Deny("s1", "3f9a10", "not")),
        ("m n o backspace enter", Deny("s1", "3f9a10", "n")),
        ("m n o erase x enter", Deny("s1", "3f9a10", "x")),
        ("m x escape y", Approve("s1", "3f9a10", False)),
        ("j y", Approve("s1", "b", False)),
        ("j j j k y", Approve("s1", "3f9a10", False)),
        ("s y", Interrupt("s1")),
        ("tab s y", Interrupt("s2")),
        ("backtab s y", Interrupt("s2")),
        ("s n", None),
        ("s enter", None),
        ("K enter", KillAll("")),
        ("K b a d enter", KillAll("bad")),
        ("K b escape", None),
        ("q", Command.QUIT),
        ("v q", None),
        ("? y", None),
        ("x", None),
        ("m q u i t", None),
    ],
)
def test_a_key_s_wish(keys: str, wish: Order | Command | None) -> None:
    subject = state()
    found = None
    for at, key in enumerate(keys.split(" ")):
        show(subject, subject.board, READ_S * at)
        found = subject.press(key, READ_S * (at + 1))
    assert found == wish


def test_a_question_that_has_just_come_takes_no_answer() -> None:
    subject = state()
    assert pressed(subject, "y", 0.1) is None
    assert "request is new" in subject.status
    assert pressed(subject, "y") == Approve("s1", "3f9a10", False)
    subject = state()
    assert all(subject.press("y", at / 10) is None for at in range(1, 30))
    assert subject.press("y", 2.9 + READ_S) == Approve("s1", "3f9a10", False)
    subject = state()
    subject.take(board(seen(), waiting=(request("b"),)))
    assert subject.press("y", 60.0) is None
    subject.note_drawn(60.0)
    assert subject.press("y", 60.1) is None


@pytest.mark.parametrize("key", "yan")
def test_nor_one_that_moved_into_the_place_of_another(key: str) -> None:
    subject = state()
    show(subject, board(seen(), waiting=(request("b"),)), 10.0)
    assert subject.press(key, 10.1) is None
    assert "request is new" in subject.status
    assert subject.mode is Mode.BOARD


def test_the_one_that_is_chosen_stays_where_others_come_before_it() -> None:
    subject = state()
    show(subject, board(seen(), waiting=(request("old"), request(), request("b"))), 10.0)
    assert pressed(subject, "y", 10.0) == Approve("s1", "3f9a10", False)


def test_a_message_that_is_being_written_is_for_no_other_request() -> None:
    for ends_it in ("escape", ""):
        subject = state()
        pressed(subject, "m n")
        show(subject, board(seen(), waiting=(request("b"),)), 10.0)
        if ends_it:
            assert [subject.press(key, 20.0) for key in (ends_it, "y")] == [None, None]
    assert (subject.mode, subject.is_closed) == (Mode.MESSAGE, True)
    for at, key in enumerate("please sKy wait"):  # none of it is a key
        assert subject.press(key, 20.0 + at) is None
    assert subject.press("enter", 40.0) is None
    assert subject.status == "nothing was sent: the request is closed"
    assert subject.press("y", 40.1) is None
    show(subject, board(seen(), waiting=(request("b"),)), 40.2)
    assert subject.press("y", 40.2 + READ_S) == Approve("s1", "b", False)


def test_a_message_is_one_however_soon_it_is_begun() -> None:
    for now_s in (0.1, READ_S):
        subject = state()
        for key in ("m", *"say why"):
            assert subject.press(key, now_s) is None
        assert subject.press("enter", now_s) == Deny("s1", "3f9a10", "say why")


def test_a_yes_to_an_order_answers_no_request() -> None:
    subject = state(board(seen(state=ENDED), waiting=(request(),)))
    assert subject.press("s", 9.0) is None
    assert subject.press("y", 9.5) == Interrupt("s1")
    assert subject.press("y", 10.0) == Approve("s1", "3f9a10", False)


def test_what_is_not_shown_whole_takes_a_yes_where_it_is() -> None:
    subject = state()
    subject.does_not_fit = True
    assert pressed(subject, "y") is None
    assert "press v to read it" in subject.status
    assert pressed(subject, "n") == Deny("s1", "3f9a10", "")
    assert pressed(subject, "vy") is None
    assert "below: press space" in subject.status
    subject.is_end_shown = True
    assert pressed(subject, "y") == Approve("s1", "3f9a10", False)


def test_no_yes_for_the_session_where_it_may_be_another_thing() -> None:
    subject = state(board(seen(), waiting=(request(may_always=False),)))
    assert pressed(subject, "a") is None
    assert "once only" in subject.status


def test_a_session_that_is_asked_about_stays_that_one() -> None:
    subject = state()
    pressed(subject, "s")
    show(subject, board(seen("s3")), 10.0)
    assert pressed(subject, "y", 20.0) == Interrupt("s1")


def test_which_events_are_shown() -> None:
    subject = state()
    allowed, denied, asked = line(1, "allowed"), line(2), line(3, "asked", "curl x")
    assert [subject.is_shown(each) for each in (allowed, denied, asked)] == [False, True, True]
    pressed(subject, "f")
    assert subject.shows is Shows.REFUSED
    assert subject.is_shown(line(4, "approved"))  # what became of the question
    assert not subject.is_shown(line(5, "audited"))
    pressed(subject, "f")
    assert subject.is_shown(allowed)
