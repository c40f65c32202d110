"""To end by the signal that another process ended by, and leave no core of one's own."""

from __future__ import annotations

import os
import resource

from sigwrap.bare import signal
from sigwrap.linux.libc import syscall
from sigwrap.machine import NUMBERS

# By the kernel's own calls: 32 and 33 are signals too, but the C library keeps them to itself.
_SYS_RT_SIGACTION = NUMBERS["rt_sigaction"]
_SYS_RT_SIGPROCMASK = NUMBERS["rt_sigprocmask"]
_SET_BYTES = 8
_UNBLOCK = 1
_DEFAULT_ACTION = bytes(4 * 8)  # handler, flags, restorer, mask


def die_of(signal_number: int) -> None:
    """Returns where that doesn't come, as in the first process of a namespace."""
    keep_from_core(os.getpid())
    if signal_number not in (signal.SIGKILL, signal.SIGSTOP):
        _act_by_default(signal_number)
    try:
        os.kill(os.getpid(), signal_number)
    except OSError:
        pass


def _act_by_default(number: int) -> None:
    syscall("rt_sigaction", _SYS_RT_SIGACTION, number, _DEFAULT_ACTION, 0, _SET_BYTES)
    alone = (1 << number - 1).to_bytes(_SET_BYTES, "little")
    syscall("rt_sigprocmask", _SYS_RT_SIGPROCMASK, _UNBLOCK, alone, 0, _SET_BYTES)


def keep_from_core(pid: int) -> None:
    """A limit of 1 also keeps a program that the kernel pipes cores to from being started."""
    _soft, hard = resource.prlimit(pid, resource.RLIMIT_CORE)
    resource.prlimit(pid, resource.RLIMIT_CORE, (1 if hard else 0, hard))
