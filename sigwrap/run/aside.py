"""What may take as long as somebody else likes is done aside: by a helper thread that is given up
when a second is over. The loop goes on meanwhile.

A helper that was given up may be stuck for as long as a FUSE server lives that doesn't answer: the
kernel lets nobody leave a read that the server has been asked for, not even by SIGKILL. So there
are only so many. When all are stuck, who needs one is told so at once; before that, `on_short` is
called (run/relief.py).
"""

from __future__ import annotations

import _thread
import os
import time
from collections.abc import Callable

from sigwrap.bare.collections import deque
from sigwrap.hints import Any
from sigwrap.linux.waits import BROKEN_OFF_AFTER_S, break_off
from sigwrap.run.loop import Loop
from sigwrap.tuples import NamedTuple

DEADLINE_S = 1.0
_HELPERS = 64
_STUCK_AT_MOST = 8  # more are a reason to do something about it
_STACK_BYTES = 512 * 1024


class Done(NamedTuple):
    value: Any


class Raised(NamedTuple):
    error: Exception


class Late(NamedTuple):
    """The deadline is over, or no helper is free."""

    why: str


Outcome = Done | Raised | Late


class _Job:
    __slots__ = (
        "drop",
        "has_begun",
        "has_own_thread",
        "is_broken_off",
        "is_over",
        "is_stuck",
        "outcome",
        "over",
        "then",
        "work",
    )

    def __init__(
        self,
        work: Callable[[], Any],
        then: Callable[[Outcome], None],
        drop: Callable[[Any], None] | None = None,
        over: Callable[[], None] | None = None,
        *,
        is_broken_off: bool = False,
    ) -> None:
        self.work = work
        self.then = then
        self.drop = drop
        self.over = over
        self.is_broken_off = is_broken_off
        self.outcome: Done | Raised | None = None
        self.has_begun = False
        self.has_own_thread = False
        self.is_over = False
        self.is_stuck = False  # it was given up while somebody was at it


class Aside:
    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self.on_short: Callable[[], None] = lambda: None
        self._wanted: deque[_Job] = deque()
        self._finished: deque[_Job] = deque()
        self._wanted_fd = -1  # as a semaphore: how many wait for a helper
        self._finished_fd = -1
        self._helpers = 0
        self._busy = 0
        self._stuck = 0  # of those, how many were given up
        self._own_threads = 0
        self._for_own_threads: deque[_Job] = deque()
        self._to_break_off = 0  # jobs that are, if they wait for long, begun or not
        self._breaks_off_soon = False
        self._at_work: dict[_Job, int] = {}  # of those, the begun ones -> by which thread
        self._were_at_work: set[_Job] = set()
        self._signals_one = _thread.allocate_lock()  # so that the signal finds it at that work
        self._found_none = False

    def do(
        self,
        work: Callable[[], Any],
        then: Callable[[Outcome], None],
        drop: Callable[[Any], None] | None = None,
        *,
        over: Callable[[], None] | None = None,
        is_broken_off: bool = False,
    ) -> None:
        """`then` is called in the loop, later; `drop` gets a value that came too late; `over` is
        called as soon as no helper works on it any more, before `then` where that isn't late.
        `is_broken_off`: a signal ends each wait in the kernel after 5 ms, with EINTR. Raises
        OSError and RuntimeError where a helper would be needed, and can't be had."""
        job = _Job(work, then, drop, over, is_broken_off=is_broken_off)
        if self._stuck >= _HELPERS:
            job.is_over = True
            if over is not None:
                over()
            self._loop.call_at(time.monotonic(), lambda: self._find_none(job))
            return
        if self._busy >= self._helpers and self._helpers < _HELPERS:
            try:
                self._start_helper()
            except (OSError, RuntimeError):
                if self._helpers == 0:
                    self._found_none = True
                    raise
        self._busy += 1
        self._wanted.append(job)
        os.eventfd_write(self._wanted_fd, 1)
        self._loop.call_at(time.monotonic() + DEADLINE_S / 2, lambda: self._look_after(job))
        self._count_in(job)

    def do_anyway(
        self,
        work: Callable[[], Any],
        then: Callable[[Outcome], None],
        *,
        over: Callable[[], None] | None = None,
        is_broken_off: bool = False,
    ) -> None:
        """Has a thread of its own, and no deadline. Work that is broken off starts later where as
        many such threads are at work as there are helpers."""
        self._watch_finished()
        job = _Job(work, then, over=over, is_broken_off=is_broken_off)
        if is_broken_off and self._own_threads >= _HELPERS:
            self._for_own_threads.append(job)
            self.on_short()
        else:
            self._start_own(job)
        self._busy += 1
        self._count_in(job)

    def _start_own(self, job: _Job) -> None:
        _thread.start_new_thread(self._help_with, (job,))
        job.has_own_thread = True
        self._own_threads += 1

    @property
    def is_full(self) -> bool:
        return self._busy >= _HELPERS

    @property
    def is_held_up(self) -> bool:
        """Our own process can't end before its helpers do."""
        return self._busy > 0

    def somebody_found_none(self) -> bool:
        """Since the last time that this was asked."""
        found_none, self._found_none = self._found_none, False
        return found_none

    def _start_helper(self) -> None:
        if self._wanted_fd < 0:
            self._wanted_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_SEMAPHORE)
        self._watch_finished()
        _thread.start_new_thread(self._help, ())
        self._helpers += 1

    def _watch_finished(self) -> None:
        if self._finished_fd < 0:
            finished_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            self._loop.watch(finished_fd, self._on_finished)
            self._finished_fd = finished_fd
            _thread.stack_size(_STACK_BYTES)

    def _help(self) -> None:
        while True:
            try:
                os.eventfd_read(self._wanted_fd)
            except InterruptedError:  # a signal for what it did before
                continue
            self._help_with(self._wanted.popleft())

    def _help_with(self, job: _Job) -> None:
        job.has_begun = not job.is_over
        if job.has_begun:
            if job.is_broken_off:
                self._at_work[job] = _thread.get_native_id()
            try:
                job.outcome = Done(job.work())
            except Exception as error:
                job.outcome = Raised(error)
            if job.is_broken_off:
                with self._signals_one:
                    del self._at_work[job]
        self._finished.append(job)
        os.eventfd_write(self._finished_fd, 1)

    def _on_finished(self, _happened: int) -> None:
        try:
            os.eventfd_read(self._finished_fd)
        except BlockingIOError:
            return  # a turn of the loop within this one has seen to it
        while self._finished:
            job = self._finished.popleft()
            self._busy -= 1
            self._stuck -= job.is_stuck
            self._to_break_off -= job.is_broken_off
            if job.has_own_thread:
                self._start_next_own()
            outcome = job.outcome
            if job.over is not None:
                job.over()
            if not job.is_over:
                assert outcome is not None, "finished"
                job.is_over = True
                job.then(outcome)
            elif isinstance(outcome, Done) and job.drop is not None:
                job.drop(outcome.value)

    def _start_next_own(self) -> None:
        self._own_threads -= 1
        if self._for_own_threads and self._own_threads < _HELPERS:
            job = self._for_own_threads.popleft()
            try:
                self._start_own(job)
            except RuntimeError as refusal:  # no thread is to be had
                job.outcome = Raised(refusal)
                self._finished.append(job)

    def _count_in(self, job: _Job) -> None:
        self._to_break_off += job.is_broken_off
        self._break_off_soon()

    def _break_off_soon(self) -> None:
        if self._to_break_off and not self._breaks_off_soon:
            self._breaks_off_soon = True
            self._loop.call_at(time.monotonic() + BROKEN_OFF_AFTER_S, self._break_off)

    def _break_off(self) -> None:
        """One timer for all. It breaks off what was at work the last time already."""
        at_work = self._at_work.copy()
        for job in at_work.keys() & self._were_at_work:
            with self._signals_one:
                if job in self._at_work:
                    break_off(at_work[job])
        self._were_at_work = set(at_work)
        self._breaks_off_soon = False
        self._break_off_soon()

    def _look_after(self, job: _Job) -> None:
        """In time for something to be done before it is given up."""
        if job.is_over:
            return
        if not job.has_begun:
            self.on_short()
        self._loop.call_at(time.monotonic() + DEADLINE_S / 2, lambda: self._give_up(job))

    def _give_up(self, job: _Job) -> None:
        if job.is_over:
            return
        job.is_over = True
        if not job.has_begun:
            self._find_none(job)
            return
        job.is_stuck = True
        self._stuck += 1
        if self._stuck > _STUCK_AT_MOST:
            self.on_short()
        job.then(Late(f"no answer within {DEADLINE_S:.0f} s"))

    def _find_none(self, job: _Job) -> None:
        self._found_none = True
        self.on_short()
        job.then(Late("too many reads of slow files or memory are pending"))
