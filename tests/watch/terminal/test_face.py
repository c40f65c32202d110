"""What a key asks for."""

from __future__ import annotations

import pytest

from sigwrap.store.killswitch import State
from sigwrap.watch.board import ENDED
from sigwrap.watch.orders import Approve, Deny, Interrupt, KillAll, Lift
from sigwrap.watch.terminal.face import READ_WITHIN_S, Face, Mode, Quit, Shows, Wish
from tests.watch.boards import board, line, seen, waits

READ_S = READ_WITHIN_S + 0.1


def face(*, only_questions: bool = False) -> Face:
    found = Face(only_questions=only_questions)
    found.take(board(seen(), seen("s2"), waiting=(waits(), waits("b"))), 0.0)
    found.does_not_fit = False  # as it is drawn
    return found


def pressed(subject: Face, keys: str, now_s: float = READ_S) -> Wish | None:
    wish: Wish | None = None
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
        ("U", None),
        ("q", Quit()),
        ("v q", None),
        ("? y", None),
        ("x", None),
        ("m q u i t", None),
    ],
)
def test_a_key_s_wish(keys: str, wish: Wish | None) -> None:
    subject = face()
    found = None
    for at, key in enumerate(keys.split(" ")):
        subject.does_not_fit = False  # as it is drawn
        found = subject.press(key, READ_S * (at + 1))
    assert found == wish


def test_a_question_that_has_just_come_takes_no_answer() -> None:
    subject = face()
    assert pressed(subject, "y", 0.1) is None
    assert "just come" in subject.said
    assert pressed(subject, "y") == Approve("s1", "3f9a10", False)


@pytest.mark.parametrize("key", "yanm")
def test_nor_one_that_moved_into_the_place_of_another(key: str) -> None:
    subject = face()
    subject.take(board(seen(), waiting=(waits("b"),)), 10.0)
    assert subject.press(key, 10.1) is None
    assert "just come" in subject.said
    assert subject.mode is Mode.BOARD


def test_the_one_that_is_chosen_stays_where_others_come_before_it() -> None:
    subject = face()
    subject.take(board(seen(), waiting=(waits("old"), waits(), waits("b"))), 10.0)
    assert pressed(subject, "y", 10.0) == Approve("s1", "3f9a10", False)


def test_a_message_that_is_being_written_is_for_nobody_else() -> None:
    subject = face()
    pressed(subject, "m n")
    subject.take(board(seen(), waiting=(waits("b"),)), 10.0)
    assert (subject.mode, subject.said) == (Mode.BOARD, "that question is settled")
    assert pressed(subject, "enter", 20.0) is None


def test_what_is_not_shown_whole_takes_a_yes_where_it_is() -> None:
    subject = face()
    subject.does_not_fit = True
    assert pressed(subject, "y") is None
    assert "v shows all" in subject.said
    assert pressed(subject, "n") == Deny("s1", "3f9a10", "")
    assert pressed(subject, "vy") is None
    assert "below: space shows it" in subject.said
    subject.is_end_shown = True
    assert pressed(subject, "y") == Approve("s1", "3f9a10", False)


def test_no_yes_for_the_session_where_it_may_be_another_thing() -> None:
    subject = Face(only_questions=False)
    subject.take(board(seen(), waiting=(waits(may_always=False),)), 0.0)
    subject.does_not_fit = False
    assert pressed(subject, "a") is None
    assert "once only" in subject.said


def test_a_session_that_is_asked_about_stays_that_one() -> None:
    subject = face()
    pressed(subject, "s")
    subject.take(board(seen("s3")), 10.0)
    assert pressed(subject, "y", 20.0) == Interrupt("s1")


def test_what_can_t_be_done_says_so() -> None:
    subject = Face(only_questions=False)
    subject.take(board(seen(state=ENDED)), 0.0)
    for key, said in {"y": "nothing waits", "s": "has ended", "U": "switch is off"}.items():
        assert pressed(subject, key) is None
        assert said in subject.said


def test_the_kill_switch_is_lifted_after_a_question() -> None:
    subject = Face(only_questions=False)
    subject.take(board(killswitch=State(1, "x", "y")), 0.0)
    assert pressed(subject, "U") is None
    assert pressed(subject, "y") == Lift()


def test_which_events_are_shown() -> None:
    subject = face()
    allowed, denied, asked = line(1, "allowed"), line(2), line(3, "asked", "curl x")
    assert [subject.is_shown(each) for each in (allowed, denied, asked)] == [False, True, True]
    pressed(subject, "f")
    assert subject.shows is Shows.REFUSED
    assert not subject.is_shown(line(4, "approved"))
    pressed(subject, "f")
    assert subject.is_shown(allowed)
    for key in ("/", "C", "u", "r", "l", "enter"):
        subject.press(key, READ_S)
    assert [subject.is_shown(each) for each in (allowed, denied, asked)] == [False, False, True]
