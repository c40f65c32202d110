"""Kernel calls on a caller's socket that may wait: a signal to the thread that makes them ends the
wait, with EINTR.

The loop makes a call itself where only a caller's trick makes it wait. The last close of a
socket waits for as long as SO_LINGER says, or for what the socket holds, and the last one can be
the supervisor's. So a timer of the kernel's stands by, which costs less than a worker.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Callable

from sigwrap.bare import signal
from sigwrap.bare.contextlib import suppress
from sigwrap.errors import KernelError
from sigwrap.hints import Any
from sigwrap.linux.libc import syscall
from sigwrap.machine import NUMBERS

_SYS_TGKILL = NUMBERS["tgkill"]
_SYS_TIMER_CREATE = NUMBERS["timer_create"]
_SYS_TIMER_SETTIME = NUMBERS["timer_settime"]
_CLOCK_MONOTONIC = 1
_SIGEV_THREAD_ID = 4
_SIGNAL = signal.SIGVTALRM
BROKEN_OFF_AFTER_S = 0.005
_EVENT = struct.Struct("=QiiI44x")  # value, signal, kind, thread
_TIME = struct.Struct("=qqqq")  # between the following, before the first


def let_calls_be_broken_off() -> None:
    """In this thread, the main one, and in those that it starts from now on."""
    signal.signal(_SIGNAL, lambda _number, _frame: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {_SIGNAL})


def break_off(tid: int) -> None:
    """End a wait in the kernel of this process's thread `tid`, if it is in one."""
    with suppress(KernelError):  # the thread has ended
        syscall("tgkill", _SYS_TGKILL, os.getpid(), tid, _SIGNAL)


class Bounded:
    """For the thread that makes it, which is the only one that may use it."""

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
