"""Which call is made again after a stop that broke it off. With the kernel: tests/signals."""

from __future__ import annotations

import errno
import signal

import pytest

from sigwrap import calls
from sigwrap.kernel import ptrace, signals
from sigwrap.kernel.ptrace import ERESTARTNOHAND, ERESTARTNOINTR, ERESTARTSYS, LAYOUT, Registers

pytestmark = pytest.mark.skipif(not LAYOUT.tells_restarts, reason="no register tells of it")

EPOLL_WAIT, CLOSE, KILL, READ = 232, 3, 62, 0
ALL_BITS = NO_CALL = (1 << 64) - 1
OURS = signal.SIGTRAP | ptrace.EVENT_STOP << 8
ITS_PROCESS_STOPS = signal.SIGSTOP | ptrace.EVENT_STOP << 8
IGNORED = signal.SIGTTIN


@pytest.mark.parametrize(
    ("number", "error", "stop", "becomes"),
    [
        (EPOLL_WAIT, errno.EINTR, OURS, ERESTARTNOHAND),
        (EPOLL_WAIT, errno.EINTR, signal.SIGWINCH, ERESTARTNOHAND),  # unless a handler runs
        (EPOLL_WAIT, errno.EINTR, IGNORED, ERESTARTNOHAND),
        (EPOLL_WAIT, errno.EINTR, signal.SIGTSTP, None),
        (EPOLL_WAIT, errno.EINTR, signal.SIGSTOP, None),  # as without a tracer
        (EPOLL_WAIT, errno.EINTR, ITS_PROCESS_STOPS, None),
        (EPOLL_WAIT, errno.EINTR, ptrace.SYSCALL_STOP, None),
        (EPOLL_WAIT, errno.EBADF, OURS, None),
        (CLOSE, errno.EINTR, OURS, None),
        (NO_CALL, errno.EINTR, OURS, None),
        (KILL, ERESTARTSYS, signal.SIGCHLD, ERESTARTNOINTR),
        (READ, ERESTARTSYS, signal.SIGCHLD, None),
    ],
)
def test_a_call_is_made_again(
    number: int, error: int, stop: int, becomes: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = {"orig_rax": number, "rax": -error & ALL_BITS}
    put: list[Registers] = []
    monkeypatch.setattr(ptrace, "registers", lambda _tid: stopped)
    monkeypatch.setattr(ptrace, "set_registers", lambda _tid, values: put.append(values))
    monkeypatch.setattr(ptrace, "architecture", lambda _tid: calls.X86_64)
    monkeypatch.setattr(signals, "catches_or_ignores", lambda _tid, number: number == IGNORED)
    ptrace.make_again(7, stop << 8 | 0x7F)
    assert put == ([] if becomes is None else [stopped | {"rax": -becomes}])
