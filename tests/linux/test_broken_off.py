"""A call that fails by any stop, and what comes of it at each of them."""

from __future__ import annotations

import ctypes
import os
import select
import signal
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from sigwrap.linux import broken_off, ptrace
from sigwrap.linux.registers import LAYOUT

pytestmark = pytest.mark.skipif(not LAYOUT.tells_restarts, reason="no register tells of it")

_EPOLL_WAIT = 232
_A_MINUTE_MS = 60_000
STOPPED = signal.SIGTRAP | ptrace.EVENT_STOP << 8


class Waiting:
    """A child in epoll_wait, which says what came of it: 1, or its errno negated."""

    def __init__(self, prepare: Callable[[], object]) -> None:
        self._wakes, self._wake = os.pipe()
        self._said, says = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._wake)
            prepare()
            os.write(says, str(self._wait()).encode())
            os._exit(0)
        os.close(says)
        self._await_call()
        ptrace.seize(self.pid)

    def _wait(self) -> int:
        epoll = select.epoll()
        epoll.register(self._wakes, select.EPOLLIN)
        wait = ctypes.CDLL(None, use_errno=True).epoll_wait
        events = ctypes.create_string_buffer(64)
        found: int = wait(epoll.fileno(), events, 1, _A_MINUTE_MS)
        return found if found >= 0 else -ctypes.get_errno()

    def _await_call(self) -> None:
        while True:
            with open(f"/proc/{self.pid}/syscall") as file:
                if file.read().startswith(f"{_EPOLL_WAIT} "):
                    return
            os.sched_yield()

    def stop(self) -> int:
        """At its next one; what wait says of it."""
        pid, status = os.waitpid(self.pid, ptrace.WALL | os.WUNTRACED)
        assert (pid, os.WIFSTOPPED(status)) == (self.pid, True)
        broken_off.make_again(self.pid, status)
        return status >> 8

    def result(self) -> int:
        os.write(self._wake, b"x")
        return int(os.read(self._said, 16))

    def close(self) -> None:
        os.close(self._wake)
        os.close(self._wakes)
        os.close(self._said)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, ptrace.WALL)


@pytest.fixture
def waiting() -> Iterator[Callable[[Callable[[], object]], Waiting]]:
    made: list[Waiting] = []

    def make(prepare: Callable[[], object]) -> Waiting:
        made.append(Waiting(prepare))
        return made[-1]

    yield make
    for each in made:
        each.close()


Make = Callable[[Callable[[], object]], Waiting]


def _nothing() -> None:
    pass


def test_by_a_stop_that_was_asked_for(waiting: Make) -> None:
    child = waiting(_nothing)
    ptrace.interrupt(child.pid)
    assert child.stop() == STOPPED
    ptrace.detach(child.pid)
    assert child.result() == 1


@pytest.mark.parametrize(
    ("number", "kept", "stop", "goes_on"),
    [
        (signal.SIGCONT, signal.SIG_DFL, STOPPED, True),  # a tracer is told by a stop of its own
        (signal.SIGWINCH, signal.SIG_DFL, signal.SIGWINCH, True),
        (signal.SIGCHLD, signal.SIG_DFL, signal.SIGCHLD, True),
        (signal.SIGTSTP, signal.SIG_IGN, signal.SIGTSTP, True),
        (signal.SIGUSR1, lambda *_: None, signal.SIGUSR1, False),  # as without a tracer
    ],
)
def test_by_a_signal(waiting: Make, number: int, kept: Any, stop: int, *, goes_on: bool) -> None:
    child = waiting(lambda: signal.signal(number, kept))
    os.kill(child.pid, number)
    assert child.stop() == stop
    ptrace.detach(child.pid, 0 if stop == STOPPED else number)
    result = child.result()
    assert result == 1 if goes_on else result < 0


def test_by_a_stop_of_its_process(waiting: Make) -> None:
    """As without a tracer."""
    child = waiting(_nothing)
    os.kill(child.pid, signal.SIGSTOP)
    assert child.stop() == signal.SIGSTOP
    ptrace.resume(child.pid, signal.SIGSTOP)
    assert child.stop() == signal.SIGSTOP | ptrace.EVENT_STOP << 8
    ptrace.detach(child.pid)
    os.kill(child.pid, signal.SIGCONT)
    assert child.result() < 0
