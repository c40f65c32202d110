"""Closing a socket that comes from inside, within bounded time.

Whoever closes it last waits for as long as SO_LINGER says, or for what it holds, and by then that
can be us: another thread may close the caller's at any moment. Such a wait ends by a signal, so a
timer stands by while we close. It is the kernel's own, and costs less than a thread that does it.
"""

from __future__ import annotations

import ctypes
import os
import struct

from sigwrap.bare import signal
from sigwrap.linux.libc import syscall
from sigwrap.machine import NUMBERS

_SYS_TIMER_CREATE = NUMBERS["timer_create"]
_SYS_TIMER_SETTIME = NUMBERS["timer_settime"]
_CLOCK_MONOTONIC = 1
_SIGEV_THREAD_ID = 4
_SIGNAL = signal.SIGVTALRM
_TAKES_AT_MOST_NS = 5_000_000
_EVENT = struct.Struct("=QiiI44x")  # value, signal, kind, thread
_TIME = struct.Struct("=qqqq")  # between the following, before the first


class BoundedClose:
    """For the thread that makes it, which is the only one that may call it."""

    def __init__(self) -> None:
        signal.signal(_SIGNAL, lambda _number, _frame: None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {_SIGNAL})
        number = ctypes.create_string_buffer(4)
        event = _EVENT.pack(0, _SIGNAL, _SIGEV_THREAD_ID, os.getpid())
        syscall("timer_create", _SYS_TIMER_CREATE, _CLOCK_MONOTONIC, event, number)
        (self._timer,) = struct.unpack("=i", number.raw)
        every = _TAKES_AT_MOST_NS
        self._on, self._off = _TIME.pack(0, every, 0, every), _TIME.pack(0, 0, 0, 0)

    def __call__(self, fd: int) -> None:
        self._set(self._on)
        try:
            os.close(fd)
        finally:
            self._set(self._off)

    def _set(self, times: bytes) -> None:
        syscall("timer_settime", _SYS_TIMER_SETTIME, self._timer, 0, times, 0)
