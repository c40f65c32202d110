"""What may take as long as somebody else likes is done aside: by a helper thread that is given up
when a second is over. The loop goes on meanwhile.

A helper that was given up may be stuck for good: the kernel lets nobody leave a read that a FUSE
server has been asked for, not even by SIGKILL. So there are only so many; when all are stuck, who
needs one is told so at once.
"""

from __future__ import annotations

import _thread
import os
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from sigwrap.run.loop import Loop
from sigwrap.tuples import NamedTuple

DEADLINE_S = 1.0
_HELPERS = 16
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
    __slots__ = ("drop", "is_over", "outcome", "then", "work")

    def __init__(
        self,
        work: Callable[[], Any],
        then: Callable[[Outcome], None],
        drop: Callable[[Any], None] | None,
    ) -> None:
        self.work = work
        self.then = then
        self.drop = drop
        self.outcome: Done | Raised | None = None
        self.is_over = False


class Aside:
    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._wanted: deque[_Job] = deque()
        self._finished: deque[_Job] = deque()
        self._wanted_fd = -1  # as a semaphore: how many wait for a helper
        self._finished_fd = -1
        self._helpers = 0
        self._busy = 0

    def do(
        self,
        work: Callable[[], Any],
        then: Callable[[Outcome], None],
        drop: Callable[[Any], None] | None = None,
    ) -> None:
        """`then` is called in the loop, later; `drop` gets a value that came too late. OSError and
        RuntimeError where a helper would be needed, and can't be had."""
        job = _Job(work, then, drop)
        if self.is_full:
            job.is_over = True
            why = "what others look at does not answer, and too much of that is waited for"
            self._loop.call_at(time.monotonic(), lambda: then(Late(why)))
            return
        if self._busy == self._helpers:
            self._start_helper()
        self._busy += 1
        self._wanted.append(job)
        os.eventfd_write(self._wanted_fd, 1)
        self._loop.call_at(time.monotonic() + DEADLINE_S, lambda: self._give_up(job))

    @property
    def is_full(self) -> bool:
        return self._busy >= _HELPERS

    @property
    def is_held_up(self) -> bool:
        """Our own process can't end before its helpers do."""
        return self._busy > 0

    def _start_helper(self) -> None:
        if self._wanted_fd < 0:
            self._wanted_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_SEMAPHORE)
        if self._finished_fd < 0:
            finished_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            self._loop.watch(finished_fd, self._on_finished)
            self._finished_fd = finished_fd
            _thread.stack_size(_STACK_BYTES)
        _thread.start_new_thread(self._help, ())
        self._helpers += 1

    def _help(self) -> None:
        while True:
            os.eventfd_read(self._wanted_fd)
            job = self._wanted.popleft()
            try:
                job.outcome = Done(job.work())
            except Exception as error:
                job.outcome = Raised(error)
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
            outcome = job.outcome
            assert outcome is not None, "finished"
            if not job.is_over:
                job.is_over = True
                job.then(outcome)
            elif isinstance(outcome, Done) and job.drop is not None:
                job.drop(outcome.value)

    def _give_up(self, job: _Job) -> None:
        if not job.is_over:
            job.is_over = True
            job.then(Late(f"no answer within {DEADLINE_S:.0f} s"))
