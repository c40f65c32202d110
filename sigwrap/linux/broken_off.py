"""What comes of a system call that was broken off: a tracer decides, at the stop that did it."""

from __future__ import annotations

import errno

from sigwrap import calls
from sigwrap.linux import procfs
from sigwrap.linux.ptrace import (
    ERESTARTNOHAND,
    ERESTARTNOINTR,
    ERESTARTSYS,
    registers,
    set_registers,
)

# Any stop breaks these off: epoll_wait, epoll_pwait, epoll_pwait2, rt_sigtimedwait, semop,
# semtimedop, io_getevents, io_pgetevents; and those that may have a socket's timeout: connect,
# accept, accept4, sendto, sendmsg, sendmmsg, recvfrom, recvmsg, recvmmsg.
_FAIL_BY_STOPS = frozenset(
    {232, 281, 441, 128, 65, 220, 208, 333, 42, 43, 288, 44, 46, 307, 45, 47, 299}
)
_CODE_OF_I386 = 0x23  # its segment
_NO_CALL = 1 << 31


def make_again(tid: int) -> None:
    """A call that, without sigwrap, no signal would break off is made again after the handler,
    whether that was installed with SA_RESTART or not. Some fail by any stop (epoll_wait), be it for
    a signal that nobody cares for: those are made again unless a handler runs, which the kernel
    knows."""
    values = registers(tid)
    arch = calls.I386 if values["cs"] == _CODE_OF_I386 else calls.X86_64
    error = -(values["rax"] & 0xFFFFFFFF) & 0xFFFFFFFF  # 32 bits: an i386 caller has no more
    if error == ERESTARTSYS and values["orig_rax"] in calls.NEVER_BROKEN_OFF[arch]:
        set_registers(tid, values | {"rax": -ERESTARTNOINTR})
    elif error == errno.EINTR and values["orig_rax"] < _NO_CALL:
        set_registers(tid, values | {"rax": -ERESTARTNOHAND})


def add_stops_after_execs(tid: int, arch: int) -> None:
    """To the options of a ptrace call that is about to be made again."""
    values = registers(tid)
    register = "r10" if arch == calls.X86_64 else "rsi"  # the fourth argument
    if values["orig_rax"] == calls.number_of("ptrace", arch):
        set_registers(tid, values | {register: values[register] | calls.PTRACE_O_TRACEEXEC})


def would_wait_anew(pid: int) -> bool:
    """It is in one of these, and would wait for the whole of its time again."""
    return procfs.call_of(pid, pid) in _FAIL_BY_STOPS
