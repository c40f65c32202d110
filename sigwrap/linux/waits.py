"""Waits that end: polls with a deadline, and kernel calls that a signal breaks off.

The last close of a socket may wait, by SO_LINGER or for what it holds, and the supervisor's close
can be the last. The loop makes such a call itself, since only a caller's trick makes it wait: a
kernel timer, which costs less than a worker thread, then signals the loop's thread.
"""

from __future__ import annotations

import ctypes
import os
import struct
import time
from collections.abc import Callable

from sigwrap.bare import signal
from sigwrap.bare.contextlib import suppress
from sigwrap.errors import KernelError
from sigwrap.hints import Any
from sigwrap.linux.libc import syscall
from sigwrap.machine import NUMBERS

_LONGEST_S = 3600.0  # poll(2) takes milliseconds as an int: 24 days at most
_SYS_TGKILL = NUMBERS["tgkill"]
_SYS_TIMER_CREATE = NUMBERS["timer_create"]
_SYS_TIMER_SETTIME = NUMBERS["timer_settime"]
_CLOCK_MONOTONIC = 1
_SIGEV_THREAD_ID = 4
_SIGNAL = signal.SIGVTALRM
BROKEN_OFF_AFTER_S = 0.005
_EVENT = struct.Struct("=QiiI44x")  # value, signal, kind, thread
_TIME = struct.Struct("=qqqq")  # between the following, before the first


def seconds_until(deadline_s: float) -> float:
    """Return how long to poll for a deadline on the monotonic clock, an hour at most."""
    return min(max(0.0, deadline_s - time.monotonic()), _LONGEST_S)


def let_calls_be_broken_off() -> None:
    """Prepare the main thread, and all threads that it starts afterwards."""
    signal.signal(_SIGNAL, lambda _number, _frame: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {_SIGNAL})


def break_off(tid: int) -> None:
    """End a kernel call of this process's thread `tid` with EINTR, if the call waits."""
    with suppress(KernelError):  # the thread has ended
        syscall("tgkill", _SYS_TGKILL, os.getpid(), tid, _SIGNAL)


class Bounded:
    """Calls that fail with EINTR after 5 ms, in the thread that makes this object."""

    def __init__(self) -> None:
        number = ctypes.create_string_buffer(4)
        event = _EVENT.pack(0, _SIGNAL, _SIGEV_THREAD_ID, os.getpid())
        syscall("timer_create", _SYS_TIMER_CREATE, _CLOCK_MONOTONIC, event, number)
        (self._timer,) = struct.unpack("=i", number.raw)
        every = int(BROKEN_OFF_AFTER_S * 1e9)
        self._on, self._off = _TIME.pack(0, every, 0, every), _TIME.pack(0, 0, 0, 0)

    def close(self, fd: int) -> None:
        self.call(lambda: os.close(fd))

    def call(self, run: Callable[[], Any]) -> Any:
        self._set(self._on)
        try:
            return run()
        finally:
            self._set(self._off)

    def _set(self, times: bytes) -> None:
        syscall("timer_settime", _SYS_TIMER_SETTIME, self._timer, 0, times, 0)
