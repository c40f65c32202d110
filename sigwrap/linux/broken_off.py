"""What comes of a system call that was broken off: a tracer decides, at the stop that did it."""

from __future__ import annotations

import errno
import os

from sigwrap import calls
from sigwrap.bare import signal
from sigwrap.linux import procfs, ptrace
from sigwrap.linux.ptrace import registers, set_registers
from sigwrap.linux.registers import ERESTARTNOHAND, ERESTARTNOINTR, ERESTARTSYS, LAYOUT
from sigwrap.machine import IS_X86_64, numbers_of

# Where semop is ipc, and some sockets' are socketcall; its io_getevents is x86_64's waitid.
_OF_I386 = frozenset(
    {256, 319, 177, 421, 117, 420, 385, 416, 102, 362, 364, 369, 370, 345, 371, 372, 337, 417}
)
# Any stop breaks these off; the last three lines may have a socket's timeout. By number alone:
# those of one architecture don't wait by the other.
_FAIL_BY_STOPS = numbers_of(
    *("epoll_wait", "epoll_pwait", "epoll_pwait2", "rt_sigtimedwait", "semop", "semtimedop"),
    *("io_getevents", "io_pgetevents", "io_uring_enter"),
    *("connect", "accept", "accept4"),
    *("sendto", "sendmsg", "sendmmsg"),
    *("recvfrom", "recvmsg", "recvmmsg"),
) | (_OF_I386 if IS_X86_64 else frozenset())
_CLOSE = {calls.X86_64: 3, calls.I386: 6}  # has closed, whatever it says
_NO_CALL = 1 << 31
_STOP_UNLESS_HANDLED = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)


def make_again(tid: int, wait_status: int) -> None:
    """A call that, without sigwrap, no signal would break off is made again after the handler,
    whether that was installed with SA_RESTART or not. Some fail by any stop (epoll_wait), be it for
    a signal that nobody cares for: those are made again unless a handler runs, which the kernel
    knows, or a signal stops their process, which breaks them off without sigwrap too. Where no
    register tells of it, nothing is done."""
    if not LAYOUT.tells_restarts:
        return
    values = registers(tid)
    error = LAYOUT.error(values)
    if error == ERESTARTSYS:
        if values["orig_rax"] in calls.NEVER_BROKEN_OFF[ptrace.architecture(tid)]:
            set_registers(tid, values | {"rax": -ERESTARTNOINTR})
    elif error == errno.EINTR and values["orig_rax"] < _NO_CALL:
        is_close = values["orig_rax"] == _CLOSE[ptrace.architecture(tid)]
        if not is_close and _is_of_tracing_alone(tid, wait_status):
            set_registers(tid, values | {"rax": -ERESTARTNOHAND})


def _is_of_tracing_alone(tid: int, wait_status: int) -> bool:
    """Unless a handler runs, nothing would have woken the call without it."""
    event, number = wait_status >> 16, os.WSTOPSIG(wait_status)
    if event:
        return event == ptrace.EVENT_STOP and number == signal.SIGTRAP  # else its process stops
    if number in _STOP_UNLESS_HANDLED:
        return procfs.catches_or_ignores(tid, number)
    return number not in (signal.SIGSTOP, ptrace.SYSCALL_STOP)


def would_begin_anew(pid: int) -> bool:
    """It waits in one of these. To let it go stops it, and the whole of its time begins anew."""
    return procfs.call_of(pid, pid) in _FAIL_BY_STOPS
