"""One thread's loop of descriptors and deadlines, and workers for what may block."""

from __future__ import annotations

import _heapq as heapq
import _thread
import itertools
import os
import select
import time
from collections.abc import Callable

from sigwrap.bare import Any, Enum, NamedTuple, deque
from sigwrap.kernel.libc import seconds_until

DEADLINE_S = 5.0
_STACK_BYTES = 512 * 1024
_MAX_EVENTS = 4096

Handler = Callable[[int], None]


class Loop:
    """Descriptors and deadlines of one thread. A handler gets the epoll event mask.

    Handlers of a turn run in the order in which their descriptors became ready, but for the one
    that was declared last: by then, every end that was known when its request came is dealt with.
    """

    def __init__(self) -> None:
        self.poll = select.epoll()
        self._handlers: dict[int, Handler] = {}
        self._last_fd = -1
        self._deadlines: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._order = itertools.count()

    def watch(
        self, fd: int, handler: Handler, events: int = select.EPOLLIN, *, last: bool = False
    ) -> None:
        """Raise OSError if the user's watches are used up: nothing is watched then."""
        self.poll.register(fd, events)
        self._handlers[fd] = handler
        if last:
            self._last_fd = fd

    def change(self, fd: int, events: int) -> None:
        """Watch the descriptor for other events, which needs no other watch."""
        self.poll.modify(fd, events)

    def unwatch(self, fd: int) -> None:
        """Forget `fd` before it is closed: another descriptor may get its number in this turn."""
        if self._handlers.pop(fd, None) is not None:
            self.poll.unregister(fd)
        if fd == self._last_fd:
            self._last_fd = -1

    @property
    def next_deadline_s(self) -> float | None:
        return self._deadlines[0][0] if self._deadlines else None

    def call_at(self, deadline_s: float, call: Callable[..., None], *words: Any) -> None:
        """Call at `deadline_s` on the monotonic clock."""
        heapq.heappush(self._deadlines, (deadline_s, next(self._order), call, words))

    def call_in(self, seconds: float, call: Callable[..., None], *words: Any) -> None:
        """Call after so many seconds; after 0, at the end of this turn."""
        self.call_at(time.monotonic() + seconds, call, *words)

    def turn(self, idle_s: float | None) -> bool:
        """Handle what is ready. Return False if nothing happened for `idle_s`."""
        events = self.poll.poll(self._timeout_s(idle_s), _MAX_EVENTS)
        last = 0
        for fd, happened in events:
            if fd == self._last_fd:
                last = happened
            elif fd in self._handlers:
                self._handlers[fd](happened)
        if last and self._last_fd >= 0:
            self._handlers[self._last_fd](last)
        if self._deadlines:
            self._call_what_is_due()
        return bool(events)

    def _timeout_s(self, idle_s: float | None) -> float | None:
        if not self._deadlines:
            return idle_s
        wait_s = seconds_until(self._deadlines[0][0])
        return wait_s if idle_s is None else min(idle_s, wait_s)

    def _call_what_is_due(self) -> None:
        now = time.monotonic()
        while self._deadlines and self._deadlines[0][0] <= now:
            _, _, call, words = heapq.heappop(self._deadlines)
            call(*words)


class Done(NamedTuple):
    value: Any


class Raised(NamedTuple):
    error: Exception


class Late(NamedTuple):
    """The deadline passed."""

    why: str


Outcome = Done | Raised | Late


class Lane(Enum):
    """A kind of work. A lane whose threads are all blocked leaves the other lanes theirs."""

    REQUESTS = "requests"  # what a request waits for
    LINES = "lines"  # to a caller's standard error
    CLOSES = "closes"  # of descriptors that a caller gave
    NAMES = "names"  # host names, as long as their servers take
    MEMORY = "memory"  # how much memory each process uses


_MOST_THREADS = {
    Lane.REQUESTS: 64,
    Lane.LINES: 16,
    Lane.CLOSES: 16,
    Lane.NAMES: 32,
    Lane.MEMORY: 1,
}


class _Job(NamedTuple):
    number: int  # no two jobs are equal
    work: Callable[[], Any]
    then: Callable[[Outcome], None]
    lane: Lane
    drop: Callable[[Any], None] | None
    over: Callable[[], None] | None
    keeps_thread: bool


class WorkerPool:
    """Threads for work that may block: reads of files and memory that another process serves."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._numbers = itertools.count()
        self._open: set[_Job] = set()  # `then` was not called yet
        self._waiting: dict[Lane, deque[_Job]] = {lane: deque() for lane in Lane}
        self._busy = dict.fromkeys(Lane, 0)
        self._threads = 0
        self._handed: deque[_Job] = deque()
        self._finished: deque[tuple[_Job, Done | Raised]] = deque()
        self._handed_fd = -1  # a semaphore: as many as there are jobs in `_handed`
        self._finished_fd = -1

    def run(
        self,
        work: Callable[[], Any],
        then: Callable[[Outcome], None],
        *,
        lane: Lane = Lane.REQUESTS,
        deadline_s: float = DEADLINE_S,
        drop: Callable[[Any], None] | None = None,
        over: Callable[[], None] | None = None,
        keeps_thread: bool = True,
    ) -> None:
        """Run `work` in a thread, then call `then` in the loop, once, with the outcome.

        `drop` gets a value that came too late. `over` is called, before `then` if it is in time,
        as soon as no thread uses what `work` uses. `keeps_thread`: whether the thread can go on to
        other work afterwards.
        """
        job = _Job(next(self._numbers), work, then, lane, drop, over, keeps_thread)
        self._open.add(job)
        self._waiting[lane].append(job)
        self._loop.call_in(deadline_s, self._give_up, job, deadline_s)
        self._begin(lane)
        if not self._threads:  # none can be started, and so none will be free later
            self._loop.call_in(0, self._give_up, job, 0.0)

    def delays_exit(self) -> bool:
        """Whether threads are at work that this process may not end before. A lookup of a host name
        ends with the process."""
        return any(busy for lane, busy in self._busy.items() if lane is not Lane.NAMES)

    def _begin(self, lane: Lane) -> None:
        waiting = self._waiting[lane]
        while waiting and self._busy[lane] < _MOST_THREADS[lane] and self._has_free_thread():
            job = waiting.popleft()
            self._busy[lane] += 1
            self._handed.append(job)
            os.eventfd_write(self._handed_fd, 1)

    def _has_free_thread(self) -> bool:
        if sum(self._busy.values()) < self._threads:
            return True
        try:
            self._start_thread()
        except (OSError, RuntimeError):
            return False  # the next job that ends tries again
        return True

    def _start_thread(self) -> None:
        if self._handed_fd < 0:
            self._handed_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_SEMAPHORE)
        if self._finished_fd < 0:
            finished_fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            self._loop.watch(finished_fd, self._on_finished)
            self._finished_fd = finished_fd
            _thread.stack_size(_STACK_BYTES)
        _thread.start_new_thread(self._work, ())
        self._threads += 1

    def _work(self) -> None:
        while True:
            try:
                os.eventfd_read(self._handed_fd)
            except InterruptedError:
                continue
            job = self._handed.popleft()
            try:
                outcome: Done | Raised = Done(job.work())
            except Exception as error:
                outcome = Raised(error)
            self._finished.append((job, outcome))
            os.eventfd_write(self._finished_fd, 1)
            if not job.keeps_thread:
                return

    def _on_finished(self, _happened: int) -> None:
        try:
            os.eventfd_read(self._finished_fd)
        except BlockingIOError:
            return  # a turn of the loop within this one took them
        while self._finished:
            job, outcome = self._finished.popleft()
            self._busy[job.lane] -= 1
            self._threads -= not job.keeps_thread
            if job.over is not None:
                job.over()
            if job in self._open:
                self._open.remove(job)
                job.then(outcome)
            elif isinstance(outcome, Done) and job.drop is not None:
                job.drop(outcome.value)
        for lane in Lane:
            self._begin(lane)

    def _give_up(self, job: _Job, after_s: float) -> None:
        if job not in self._open:
            return
        self._open.remove(job)
        why = f"no answer within {after_s:.0f} s"
        if job in self._waiting[job.lane]:
            self._waiting[job.lane].remove(job)
            if job.over is not None:
                job.over()
            why = "too many reads of slow files or memory are pending"
        job.then(Late(why))
