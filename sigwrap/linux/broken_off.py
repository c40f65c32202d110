"""What comes of a system call that was broken off: a tracer decides, at the stop that broke it off."""

from __future__ import annotations

import errno

from sigwrap import calls
from sigwrap.linux.ptrace import (
    ERESTARTNOHAND,
    ERESTARTNOINTR,
    ERESTARTSYS,
    registers,
    set_registers,
)

_CODE_OF_I386 = 0x23  # its segment
_NO_CALL = 1 << 31


def make_again(tid: int) -> None:
    """At the stop before a signal: a call that, without sigwrap, no signal would break off is made
    again after the handler, whether that was installed with SA_RESTART or not."""
    values = registers(tid)
    arch = calls.I386 if values["cs"] == _CODE_OF_I386 else calls.X86_64
    if values["orig_rax"] in calls.NEVER_BROKEN_OFF[arch] and _error(values) == ERESTARTSYS:
        set_registers(tid, values | {"rax": -ERESTARTNOINTR})


def make_again_unless_handled(tid: int) -> None:
    """At a stop that sigwrap asked for: some calls (epoll_wait, sigtimedwait) fail by any stop. It
    is the kernel that knows then whether a handler runs, and EINTR is true."""
    values = registers(tid)
    if values["orig_rax"] < _NO_CALL and _error(values) == errno.EINTR:
        set_registers(tid, values | {"rax": -ERESTARTNOHAND})


def _error(values: dict[str, int]) -> int:
    """32 bits: an i386 caller has no more."""
    return -(values["rax"] & 0xFFFFFFFF) & 0xFFFFFFFF
