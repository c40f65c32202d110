"""Call the C library and the kernel, and wait with a deadline."""

from __future__ import annotations

import _thread
import ctypes
import os
import struct
import time
from collections.abc import Callable, Iterable

from sigwrap.bare import Any, signal
from sigwrap.errors import KernelError
from sigwrap.machine import NUMBERS

libc = ctypes.CDLL(None, use_errno=True)
_syscall = libc.syscall
_syscall.restype = ctypes.c_long

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


def syscall(name: str, number: int, *arguments: int | bytes | ctypes.Array[ctypes.c_char]) -> int:
    """Make a system call. Integers are widened to long: variadic C would pass 32 bits."""
    wide = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result: int = _syscall(ctypes.c_long(number), *wide)
    if result < 0:
        raise failure(name)
    return result


def raw_syscall(*arguments: type) -> Any:
    """Return syscall(2) for arguments of these types: faster, and -1 is a failure."""
    found = libc["syscall"]
    found.argtypes = (ctypes.c_long, *arguments)
    found.restype = ctypes.c_long
    return found


def last_failure() -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code))


def failure(name: str) -> KernelError:
    code = ctypes.get_errno()
    return KernelError(f"{name}: {os.strerror(code)}", code)


def strings(values: Iterable[bytes]) -> ctypes.Array[ctypes.c_char_p]:
    return (ctypes.c_char_p * (len(listed := list(values)) + 1))(*listed)


def execve(
    program: bytes,
    words: ctypes.Array[ctypes.c_char_p],
    environment: ctypes.Array[ctypes.c_char_p],
) -> int:
    """Return the errno of a failed exec. Unlike Python's, it allocates no memory."""
    libc.execve(program, words, environment)
    return ctypes.get_errno()


_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38


def _prctl(name: str, option: int, value: int) -> None:
    zero = ctypes.c_ulong(0)
    if libc.prctl(option, ctypes.c_ulong(value), zero, zero, zero) != 0:
        raise failure(f"prctl({name})")


def set_parent_death_signal(signal_number: int) -> None:
    _prctl("PR_SET_PDEATHSIG", _PR_SET_PDEATHSIG, signal_number)


def set_child_subreaper() -> None:
    _prctl("PR_SET_CHILD_SUBREAPER", _PR_SET_CHILD_SUBREAPER, 1)


def set_no_new_privileges() -> None:
    _prctl("PR_SET_NO_NEW_PRIVS", _PR_SET_NO_NEW_PRIVS, 1)


def set_dumpable(value: bool) -> None:
    """Allow or forbid processes of this user to trace us or to open our /proc/PID/mem and fd."""
    _prctl("PR_SET_DUMPABLE", _PR_SET_DUMPABLE, value)


def set_process_name(name: bytes) -> None:
    if libc.prctl(_PR_SET_NAME, ctypes.c_char_p(name)) != 0:
        raise failure("prctl(PR_SET_NAME)")


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


_set_timer = raw_syscall(ctypes.c_long, ctypes.c_long, ctypes.c_char_p, ctypes.c_void_p)


class Bounded:
    """A timer for the thread that makes it. No other thread may use it."""

    def __init__(self) -> None:
        number = ctypes.create_string_buffer(4)
        event = _EVENT.pack(0, _SIGNAL, _SIGEV_THREAD_ID, _thread.get_native_id())
        syscall("timer_create", _SYS_TIMER_CREATE, _CLOCK_MONOTONIC, event, number)
        (self._timer,) = struct.unpack("=i", number.raw)
        every = int(_AFTER_S * 1e9)
        self._on, self._off = _TIME.pack(0, every, 0, every), _TIME.pack(0, 0, 0, 0)
        self._is_on = False

    def close(self, fd: int) -> None:
        self.call(lambda: os.close(fd))

    def call(self, run: Callable[[], Any]) -> Any:
        """Call `run`, which may use this timer for calls of its own."""
        if self._is_on:
            return run()
        self._is_on = True
        self._set(self._on)
        try:
            return run()
        finally:
            self._set(self._off)
            self._is_on = False

    def delete(self) -> None:
        syscall("timer_delete", _SYS_TIMER_DELETE, self._timer)

    def _set(self, times: bytes) -> None:
        if _set_timer(_SYS_TIMER_SETTIME, self._timer, 0, times, None) < 0:
            raise failure("timer_settime")
