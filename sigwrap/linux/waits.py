"""Waits that end: polls with a deadline, and kernel calls that a signal interrupts.

A call on a caller's socket may block: the last close waits by SO_LINGER, or for the socket's queue,
and the supervisor's close can be the last. Only a malicious caller causes that. A kernel timer ends
such a call with EINTR, which costs less than a worker.
"""

from __future__ import annotations

import _thread
import ctypes
import os
import struct
import time
from collections.abc import Callable

from sigwrap.bare import Any, signal
from sigwrap.linux.libc import syscall
from sigwrap.machine import NUMBERS

_LONGEST_S = 3600.0  # poll(2) takes milliseconds as an int: 24 days at most
_SYS_TIMER_CREATE = NUMBERS["timer_create"]
_SYS_TIMER_SETTIME = NUMBERS["timer_settime"]
_SYS_TIMER_DELETE = NUMBERS["timer_delete"]
_CLOCK_MONOTONIC = 1
_SIGEV_THREAD_ID = 4
_SIGNAL = signal.SIGVTALRM
_AFTER_S = 0.005
_EVENT = struct.Struct("=QiiI44x")  # value, signal, kind, thread
_TIME = struct.Struct("=qqqq")  # interval, first expiry


def seconds_until(deadline_s: float) -> float:
    """Return the seconds to poll until a deadline on the monotonic clock, an hour at most."""
    return min(max(0.0, deadline_s - time.monotonic()), _LONGEST_S)


def let_calls_be_broken_off() -> None:
    """Let timers interrupt calls in this thread, the main one, and in threads started later."""
    signal.signal(_SIGNAL, lambda _number, _frame: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {_SIGNAL})


def run_bounded(work: Callable[[], Any]) -> Any:
    """Run `work` in this thread; a call that blocks fails with EINTR after 5 ms."""
    timer = Bounded()
    try:
        return timer.call(work)
    finally:
        timer.delete()


class Bounded:
    """A timer for the thread that makes it. No other thread may use it."""

    def __init__(self) -> None:
        number = ctypes.create_string_buffer(4)
        event = _EVENT.pack(0, _SIGNAL, _SIGEV_THREAD_ID, _thread.get_native_id())
        syscall("timer_create", _SYS_TIMER_CREATE, _CLOCK_MONOTONIC, event, number)
        (self._timer,) = struct.unpack("=i", number.raw)
        every = int(_AFTER_S * 1e9)
        self._on, self._off = _TIME.pack(0, every, 0, every), _TIME.pack(0, 0, 0, 0)

    def close(self, fd: int) -> None:
        self.call(lambda: os.close(fd))

    def call(self, run: Callable[[], Any]) -> Any:
        self._set(self._on)
        try:
            return run()
        finally:
            self._set(self._off)

    def delete(self) -> None:
        syscall("timer_delete", _SYS_TIMER_DELETE, self._timer)

    def _set(self, times: bytes) -> None:
        syscall("timer_settime", _SYS_TIMER_SETTIME, self._timer, 0, times, 0)
