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

# epoll_wait, epoll_pwait, epoll_pwait2, rt_sigtimedwait, semop, semtimedop, io_getevents,
# io_pgetevents: any stop breaks them off.
_FAIL_BY_STOPS = frozenset({232, 281, 441, 128, 65, 220, 208, 333})
_CODE_OF_I386 = 0x23  # its segment
_NO_CALL = 1 << 31


def make_again(tid: int, *, by_us: bool) -> None:
    """At the stop before a signal, or at one that sigwrap asked for (`by_us`). A call that, without
    sigwrap, no signal would break off is made again after the handler, whether that was installed
    with SA_RESTART or not. Some fail by any stop (epoll_wait, sigtimedwait): those are made again
    unless a handler runs, which the kernel knows."""
    values = registers(tid)
    arch = calls.I386 if values["cs"] == _CODE_OF_I386 else calls.X86_64
    error = -(values["rax"] & 0xFFFFFFFF) & 0xFFFFFFFF  # 32 bits: an i386 caller has no more
    if error == ERESTARTSYS and values["orig_rax"] in calls.NEVER_BROKEN_OFF[arch]:
        set_registers(tid, values | {"rax": -ERESTARTNOINTR})
    elif by_us and error == errno.EINTR and values["orig_rax"] < _NO_CALL:
        set_registers(tid, values | {"rax": -ERESTARTNOHAND})


def would_wait_anew(pid: int) -> bool:
    """It is in one of these, and would wait for the whole of its time again."""
    return procfs.call_of(pid, pid) in _FAIL_BY_STOPS
