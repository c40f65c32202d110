"""Ends by signals: sigwrap's own end as the command ended, and traces of the kernel's SIGKILL."""

from __future__ import annotations

import os
import resource

from sigwrap.bare import signal
from sigwrap.linux import procfs
from sigwrap.linux.libc import syscall
from sigwrap.linux.proc_files import contents
from sigwrap.machine import NUMBERS

# The kernel's own calls: the C library refuses signals 32 and 33.
_SYS_RT_SIGACTION = NUMBERS["rt_sigaction"]
_SYS_RT_SIGPROCMASK = NUMBERS["rt_sigprocmask"]
_SET_BYTES = 8
_UNBLOCK = 1
_DEFAULT_ACTION = bytes(4 * 8)  # handler, flags, restorer, mask

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_NO_LIMIT = resource.RLIM_INFINITY
_NEARLY, _HARDLY = 0.75, 0.2
_UTIME, _STIME, _START_TIME = 11, 12, 19  # among procfs.figures


def die_of(signal_number: int) -> None:
    """End by a signal, without a core. Returns if that fails, as in a namespace's first process."""
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
    """Limit cores to one byte, which also keeps the kernel from starting a core handler."""
    _soft, hard = resource.prlimit(pid, resource.RLIMIT_CORE)
    resource.prlimit(pid, resource.RLIMIT_CORE, (1 if hard else 0, hard))


def oom_kills() -> int | None:
    """Return how often the OOM killer has killed since boot, None if that cannot be read.

    The kernel counts before it kills, so before the end of the process can be seen.
    """
    lines = contents("/proc/vmstat") or b""
    _, _, rest = lines.partition(b"\noom_kill ")
    count = rest.partition(b"\n")[0]
    return int(count) if count.isdigit() else None


def used_up_cpu_limit(pid: int, start_time: int) -> int | None:
    """Return the hard RLIMIT_CPU in seconds that a killed process has used up, or 0 if it has not.

    None if that is unknown: the parent may have reaped the process.
    """
    figures = procfs.figures(pid)
    if figures is None or int(figures[_START_TIME]) != start_time:
        return None
    try:
        _soft, hard = resource.prlimit(pid, resource.RLIMIT_CPU)
    except (OSError, ValueError):
        return None
    # The kernel enforces the limit by ticks, and shows what the scheduler has measured. The two
    # differ, on a busy machine by much.
    used_s = (int(figures[_UTIME]) + int(figures[_STIME])) / _TICKS_PER_S
    if hard == _NO_LIMIT or used_s < hard * _HARDLY:
        return 0
    return hard if used_s >= hard * _NEARLY else None
