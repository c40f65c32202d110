"""Work that may block is done by threads, and the loop goes on."""

from __future__ import annotations

import _thread
import ctypes
import errno
import os
from collections.abc import Callable, Iterator
from queue import SimpleQueue

import pytest

from sigwrap.kernel.libc import let_calls_be_broken_off, libc, run_bounded
from sigwrap.session import loop
from sigwrap.session.loop import Done, Lane, Late, Loop, Outcome, Raised, WorkerPool
from tests.support.waiting import PATIENCE_S, Pipe

SOON_S = 0.01


class Desk:
    """A pool, its loop, and what it was found to do."""

    def __init__(self) -> None:
        self.loop = Loop()
        self.pool = WorkerPool(self.loop)
        self.found: list[Outcome] = []
        self.happened: list[str] = []

    def run(
        self, work: Callable[[], object], lane: Lane = Lane.REQUESTS, within_s: float = PATIENCE_S
    ) -> None:
        def then(outcome: Outcome) -> None:
            self.found.append(outcome)
            self.happened.append(type(outcome).__name__)

        self.pool.run(
            work,
            then,
            lane=lane,
            deadline_s=within_s,
            drop=lambda value: self.happened.append(f"drop {value!r}"),
            over=lambda: self.happened.append("over"),
        )

    def block(self, pipe: Pipe, lane: Lane = Lane.REQUESTS, within_s: float = SOON_S) -> None:
        """Return when a thread is blocked, until the pipe's end to write to is let go."""
        begun: SimpleQueue[None] = SimpleQueue()

        def work() -> bytes:
            begun.put(None)
            return os.read(pipe.reading, 1)

        self.run(work, lane, within_s)
        begun.get()

    def turn_until(self, *wanted: str) -> None:
        while self.happened != list(wanted):
            assert len(self.happened) < len(wanted), self.happened
            self.loop.turn(None)
        self.happened.clear()


@pytest.fixture
def desk() -> Desk:
    return Desk()


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    with Pipe() as pipe:
        yield pipe


@pytest.fixture
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "_MOST_THREADS", dict.fromkeys(Lane, 1))


def test_what_it_returns_or_raises_comes_to_the_loop(desk: Desk) -> None:
    desk.run(lambda: 7)
    desk.turn_until("over", "Done")
    desk.run(lambda: os.stat("/nowhere"))
    desk.turn_until("over", "Raised")
    done, raised = desk.found
    assert done == Done(7)
    assert isinstance(raised, Raised) and isinstance(raised.error, FileNotFoundError)
    assert not desk.pool.delays_exit()


def test_work_that_is_late_is_given_up_and_its_value_is_dropped(desk: Desk, pipe: Pipe) -> None:
    desk.block(pipe)
    desk.turn_until("Late")
    assert desk.pool.delays_exit()
    pipe.let_go()
    desk.turn_until("over", "drop b''")
    assert not desk.pool.delays_exit()


@pytest.mark.usefixtures("one_thread")
def test_where_all_threads_are_blocked_work_waits_for_its_own_deadline(
    desk: Desk, pipe: Pipe
) -> None:
    ran: list[str] = []
    desk.block(pipe)
    desk.turn_until("Late")
    desk.run(lambda: ran.append("late"), within_s=SOON_S)
    desk.turn_until("over", "Late")
    assert isinstance(desk.found[-1], Late) and "too many reads" in desk.found[-1].why
    desk.run(lambda: ran.append("in time"))
    pipe.let_go()
    desk.turn_until("over", "drop b''", "over", "Done")
    assert ran == ["in time"]


def test_only_a_lookup_of_a_host_name_never_delays_the_exit(desk: Desk, pipe: Pipe) -> None:
    desk.block(pipe, Lane.NAMES)
    assert not desk.pool.delays_exit()
    desk.block(pipe, Lane.LINES)
    assert desk.pool.delays_exit()
    pipe.let_go()
    while desk.pool.delays_exit():
        desk.loop.turn(None)


@pytest.mark.usefixtures("one_thread")
def test_a_blocked_lane_leaves_the_others_their_threads(desk: Desk, pipe: Pipe) -> None:
    desk.block(pipe, within_s=PATIENCE_S)
    for lane in set(Lane) - {Lane.REQUESTS}:
        desk.run(lambda: 7, lane)
        desk.turn_until("over", "Done")
    pipe.let_go()
    desk.turn_until("over", "Done")


def test_there_are_never_more_threads_than_jobs_or_than_allowed(
    desk: Desk, pipe: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop, "_MOST_THREADS", dict.fromkeys(Lane, 2))
    started: list[None] = []
    start = WorkerPool._start_thread
    monkeypatch.setattr(
        WorkerPool,
        "_start_thread",
        lambda pool: started.append(start(pool)),
    )
    for _ in range(3):
        desk.run(lambda: 7)
        desk.turn_until("over", "Done")
    assert len(started) == 1
    for _ in range(2):
        desk.block(pipe)
    desk.turn_until("Late", "Late")
    for _ in range(5):
        desk.run(lambda: 7, within_s=SOON_S)
    desk.turn_until(*["over", "Late"] * 5)
    assert len(started) == 2


def test_a_thread_that_is_not_kept_ends(desk: Desk) -> None:
    found: list[Outcome] = []
    for _ in range(2):
        desk.pool.run(_thread.get_native_id, found.append, keeps_thread=False)
    while len(found) < 2:
        desk.loop.turn(None)
    desk.run(lambda: 7)
    desk.turn_until("over", "Done")
    assert not desk.pool.delays_exit() and desk.pool._threads == 1


def test_a_turn_within_a_turn_may_take_the_outcome_first(desk: Desk) -> None:
    """The outer one was told of the same event before."""
    desk.run(lambda: 7)
    desk.turn_until("over", "Done")
    desk.pool._on_finished(0)
    assert desk.found == [Done(7)]


def test_without_a_thread_work_is_given_up_at_once(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(*_: object) -> int:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(_thread, "start_new_thread", none_left)
        desk.run(lambda: 7)
        desk.turn_until("over", "Late")
    assert not desk.pool.delays_exit()
    desk.run(lambda: 7)
    desk.turn_until("over", "Done")


def test_a_bounded_wait_in_the_kernel_is_broken_off(desk: Desk, pipe: Pipe) -> None:
    let_calls_be_broken_off()

    def wait() -> int:
        libc.read(pipe.reading, ctypes.create_string_buffer(1), 1)
        return ctypes.get_errno()

    desk.run(lambda: run_bounded(wait))
    desk.turn_until("over", "Done")
    assert desk.found == [Done(errno.EINTR)]
