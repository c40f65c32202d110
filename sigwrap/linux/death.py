"""Ends by a signal: dying of one ourselves, and what the kernel tells about a SIGKILL."""

from __future__ import annotations

import os
import resource

from sigwrap.bare import signal
from sigwrap.linux import procfs
from sigwrap.linux.libc import syscall
from sigwrap.linux.proc_files import contents
from sigwrap.machine import NUMBERS

# The kernel's own calls: the C library does not let us set 32 and 33, which are signals too.
_SYS_RT_SIGACTION = NUMBERS["rt_sigaction"]
_SYS_RT_SIGPROCMASK = NUMBERS["rt_sigprocmask"]
_SET_BYTES = 8
_UNBLOCK = 1
_DEFAULT_ACTION = bytes(4 * 8)  # handler, flags, restorer, mask

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_NO_LIMIT = resource.RLIM_INFINITY
_NEARLY, _HARDLY = 0.75, 0.2
_UTIME, _STIME, _START_TIME = 11, 12, 19  # among the figures


def die_of(signal_number: int) -> None:
    """End by this signal. Returns if it has no effect, as in the first process of a namespace."""
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
    """Prevent a core file. With a limit of 1, the kernel starts no program to pipe it to either."""
    _soft, hard = resource.prlimit(pid, resource.RLIMIT_CORE)
    resource.prlimit(pid, resource.RLIMIT_CORE, (1 if hard else 0, hard))


def oom_kills() -> int | None:
    """Return how many processes the OOM killer has killed since the machine started, or None.

    It counts before it kills, so before the end can be seen.
    """
    lines = contents("/proc/vmstat") or b""
    _, _, rest = lines.partition(b"\noom_kill ")
    count = rest.partition(b"\n")[0]
    return int(count) if count.isdigit() else None


def used_up_cpu_limit(pid: int, start_time: int) -> int | None:
    """Return the process's hard RLIMIT_CPU in seconds if it has used that up, and 0 if not.

    Nothing else tells. None if it is unknown: the parent may have reaped the process.
    """
    figures = procfs.figures(pid)
    if figures is None or int(figures[_START_TIME]) != start_time:
        return None
    try:
        _soft, hard = resource.prlimit(pid, resource.RLIMIT_CPU)
    except (OSError, ValueError):
        return None
    # The kernel compares ticks with the limit, and shows what the scheduler measured: these differ
    # by some percent, and on a busy machine by much more.
    used_s = (int(figures[_UTIME]) + int(figures[_STIME])) / _TICKS_PER_S
    if hard == _NO_LIMIT or used_s < hard * _HARDLY:
        return 0
    return hard if used_s >= hard * _NEARLY else None
