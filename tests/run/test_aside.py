"""What may take its time is done aside, and the loop goes on."""

from __future__ import annotations

import _thread
import ctypes
import errno
import os
from collections.abc import Callable, Iterator
from queue import SimpleQueue

import pytest

from sigwrap.linux.libc import libc
from sigwrap.linux.waits import break_off, let_calls_be_broken_off
from sigwrap.run import aside
from sigwrap.run.aside import Aside, Done, Late, Outcome, Raised
from sigwrap.run.loop import Loop
from tests.support.waiting import PATIENCE_S, Pipe


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture(autouse=True)
def late(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aside, "DEADLINE_S", PATIENCE_S)


@pytest.fixture
def stuck() -> Iterator[Pipe]:
    """Until its end to write to is let go."""
    with Pipe() as pipe:
        yield pipe


def _do_stuck(
    helpers: Aside, stuck: Pipe, found: list[Outcome], drop: Callable[[bytes], None] | None = None
) -> None:
    """Before the loop turns, a helper is at it."""
    begun: SimpleQueue[None] = SimpleQueue()

    def work() -> bytes:
        begun.put(None)
        return os.read(stuck.reading, 1)

    helpers.do(work, found.append, drop)
    begun.get()


def _turn_until(loop: Loop, found: list[Outcome], count: int = 1) -> None:
    while len(found) < count:
        loop.turn(None)


def test_what_it_gives_or_raises_comes_to_the_loop(loop: Loop) -> None:
    helpers, found = Aside(loop), list[Outcome]()
    helpers.do(lambda: 7, found.append)
    _turn_until(loop, found)
    assert found == [Done(7)]
    helpers.do(lambda: os.stat("/nowhere"), found.append)
    _turn_until(loop, found, 2)
    assert isinstance(found[1], Raised) and isinstance(found[1].error, FileNotFoundError)
    assert not helpers.is_held_up


def test_what_comes_too_late_is_dropped(
    loop: Loop, stuck: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aside, "DEADLINE_S", 0.01)
    helpers, found, dropped = Aside(loop), list[Outcome](), list[bytes]()
    _do_stuck(helpers, stuck, found, dropped.append)
    _turn_until(loop, found)
    assert isinstance(found[0], Late) and helpers.is_held_up
    stuck.let_go()
    while not dropped:
        loop.turn(None)
    assert (dropped, len(found), helpers.is_held_up) == ([b""], 1, False)


def test_what_a_worker_uses_is_let_go_when_it_is_done(
    loop: Loop, stuck: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the outcome is told, long after the deadline, and where no worker takes it on."""
    monkeypatch.setattr(aside, "_HELPERS", 1)
    helpers, happened = Aside(loop), list[str]()

    def do(work: Callable[[], object]) -> None:
        def then(outcome: Outcome) -> None:
            happened.append(type(outcome).__name__)

        helpers.do(work, then, over=lambda: happened.append("over"))

    def turn_until(*wanted: str) -> None:
        while happened != list(wanted):
            assert len(happened) < len(wanted), happened
            loop.turn(None)

    do(lambda: 7)
    turn_until("over", "Done")
    monkeypatch.setattr(aside, "DEADLINE_S", 0.01)
    happened.clear()
    do(lambda: os.read(stuck.reading, 1))
    turn_until("Late")
    do(lambda: 7)
    turn_until("Late", "over", "Late")
    stuck.let_go()
    turn_until("Late", "over", "Late", "over")


@pytest.mark.parametrize("anyway", [False, True])
def test_a_wait_in_the_kernel_is_broken_off(loop: Loop, stuck: Pipe, anyway: bool) -> None:
    let_calls_be_broken_off()
    helpers, found = Aside(loop), list[Outcome]()

    def wait() -> int:
        libc.read(stuck.reading, ctypes.create_string_buffer(1), 1)
        return ctypes.get_errno()

    (helpers.do_anyway if anyway else helpers.do)(wait, found.append, is_broken_off=True)
    _turn_until(loop, found)
    assert found == [Done(errno.EINTR)]


def test_there_is_one_timer_for_all_waits(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often the workers have had nothing to do meanwhile."""
    monkeypatch.setattr(aside, "BROKEN_OFF_AFTER_S", 2 * PATIENCE_S)
    helpers, found = Aside(loop), list[Outcome]()
    for count in range(1, 5):
        helpers.do(lambda: 7, found.append, is_broken_off=True)
        _turn_until(loop, found, count)
    assert loop.next_deadline_s is not None
    later_s = loop.next_deadline_s + PATIENCE_S
    assert len([due_s for due_s, *_ in loop._deadlines if due_s > later_s]) == 1


def test_a_signal_that_comes_late_ends_no_worker(loop: Loop) -> None:
    let_calls_be_broken_off()
    helpers, found = Aside(loop), list[Outcome]()
    helpers.do(_thread.get_native_id, found.append)
    _turn_until(loop, found)
    assert isinstance(found[0], Done)
    break_off(found[0].value)
    helpers.do(_thread.get_native_id, found.append)
    _turn_until(loop, found, 2)
    assert found[0] == found[1]


def test_threads_of_their_own_take_turns(
    loop: Loop, stuck: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is broken off comes later where too many are at work; what would free them does not."""
    monkeypatch.setattr(aside, "_HELPERS", 1)
    helpers, found, short = Aside(loop), list[Outcome](), list[None]()
    helpers.on_short = lambda: short.append(None)
    helpers.do_anyway(lambda: os.read(stuck.reading, 1), found.append, is_broken_off=True)
    helpers.do_anyway(lambda: 2, found.append, is_broken_off=True)
    helpers.do_anyway(lambda: 3, found.append)
    _turn_until(loop, found)
    assert (found, short) == ([Done(3)], [None])
    stuck.let_go()
    _turn_until(loop, found, 3)
    assert found[1:] == [Done(b""), Done(2)]


def test_there_are_only_so_many_helpers(
    loop: Loop, stuck: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who comes when all are stuck is told so at once, and each time something can be done."""
    monkeypatch.setattr(aside, "_HELPERS", 2)
    monkeypatch.setattr(aside, "_STUCK_AT_MOST", 1)
    helpers, found, calls = Aside(loop), list[Outcome](), list[str]()
    helpers.on_short = lambda: calls.append("short")
    with monkeypatch.context() as patched:
        patched.setattr(aside, "DEADLINE_S", 0.01)
        for _ in range(2):
            _do_stuck(helpers, stuck, found)
        _turn_until(loop, found, 2)
    assert (calls, helpers.somebody_found_none()) == (["short"], False)
    helpers.do(lambda: 7, found.append)
    _turn_until(loop, found, 3)
    assert isinstance(found[2], Late) and "too many reads" in found[2].why
    assert (calls, helpers.somebody_found_none()) == (["short"] * 2, True)
    assert not helpers.somebody_found_none()
    helpers.do_anyway(lambda: 8, found.append)
    _turn_until(loop, found, 4)
    assert found[3] == Done(8)
    stuck.let_go()
    while helpers.is_held_up:
        loop.turn(None)
    helpers.do(lambda: 7, found.append)
    _turn_until(loop, found, 5)
    assert found[4] == Done(7)


def test_who_waits_for_a_helper_is_served_when_one_is_free(
    loop: Loop, stuck: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aside, "_HELPERS", 1)
    helpers, found = Aside(loop), list[Outcome]()
    _do_stuck(helpers, stuck, found)
    helpers.do(lambda: b"next", found.append)
    stuck.let_go()
    _turn_until(loop, found, 2)
    assert found == [Done(b""), Done(b"next")]


def test_who_waits_for_a_helper_in_vain_is_told_so(
    loop: Loop, stuck: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what he wanted is not done any more."""
    monkeypatch.setattr(aside, "_HELPERS", 1)
    monkeypatch.setattr(aside, "DEADLINE_S", 0.01)
    helpers, found, done = Aside(loop), list[Outcome](), list[str]()
    _do_stuck(helpers, stuck, found)
    helpers.do(lambda: done.append("in vain"), found.append)
    _turn_until(loop, found, 2)
    assert [type(each) for each in found] == [Late, Late]
    assert helpers.somebody_found_none()
    stuck.let_go()
    while helpers.is_held_up:
        loop.turn(None)
    assert not done


def test_a_turn_within_a_turn_may_see_to_it_first(loop: Loop) -> None:
    """The outer one was told of the same event before."""
    helpers, found = Aside(loop), list[Outcome]()
    helpers.do(lambda: 7, found.append)
    _turn_until(loop, found)
    helpers._on_finished(0)
    assert found == [Done(7)]


def test_a_helper_that_can_t_be_had_is_none(loop: Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: object) -> int:
        raise RuntimeError("can't start new thread")

    helpers, found = Aside(loop), list[Outcome]()
    with monkeypatch.context() as patched:
        patched.setattr(_thread, "start_new_thread", none_left)
        with pytest.raises(RuntimeError):
            helpers.do(lambda: 7, found.append)
    assert helpers.somebody_found_none()
    assert not helpers.is_held_up
    helpers.do(lambda: 7, found.append)
    _turn_until(loop, found)
    assert found == [Done(7)]
