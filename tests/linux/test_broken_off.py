"""A call that fails by any stop, and what comes of it at each of them."""

from __future__ import annotations

import ctypes
import os
import select
import signal
from collections.abc import Callable, Iterator

import pytest

from sigwrap.linux import broken_off, ptrace
from sigwrap.linux.registers import LAYOUT

pytestmark = pytest.mark.skipif(not LAYOUT.tells_restarts, reason="no register tells of it")

_EPOLL_WAIT = 232
_A_MINUTE_MS = 60_000


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
    assert child.stop() == signal.SIGTRAP | ptrace.EVENT_STOP << 8
    ptrace.detach(child.pid)
    assert child.result() == 1


def test_by_a_signal_to_go_on(waiting: Make) -> None:
    """A tracer is told of it by a stop of its own."""
    child = waiting(lambda: signal.signal(signal.SIGCONT, signal.SIG_DFL))
    os.kill(child.pid, signal.SIGCONT)
    assert child.stop() == signal.SIGTRAP | ptrace.EVENT_STOP << 8
    ptrace.detach(child.pid)
    assert child.result() == 1


@pytest.mark.parametrize("number", [signal.SIGWINCH, signal.SIGCHLD])
def test_by_a_signal_that_nobody_cares_for(waiting: Make, number: signal.Signals) -> None:
    child = waiting(lambda: signal.signal(number, signal.SIG_DFL))
    os.kill(child.pid, number)
    assert child.stop() == number
    ptrace.detach(child.pid, number)
    assert child.result() == 1


def test_by_one_that_would_stop_it_but_is_ignored(waiting: Make) -> None:
    child = waiting(lambda: signal.signal(signal.SIGTSTP, signal.SIG_IGN))
    os.kill(child.pid, signal.SIGTSTP)
    assert child.stop() == signal.SIGTSTP
    ptrace.detach(child.pid, signal.SIGTSTP)
    assert child.result() == 1


def test_by_a_handler(waiting: Make) -> None:
    """As without a tracer."""
    child = waiting(lambda: signal.signal(signal.SIGUSR1, lambda *_: None))
    os.kill(child.pid, signal.SIGUSR1)
    assert child.stop() == signal.SIGUSR1
    ptrace.detach(child.pid, signal.SIGUSR1)
    assert child.result() < 0


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
