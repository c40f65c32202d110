"""What the kernel still tells of a SIGKILL that no process of the session sent."""

from __future__ import annotations

import os
import resource

from sigwrap.linux import procfs
from sigwrap.linux.proc_files import contents

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_NO_LIMIT = resource.RLIM_INFINITY
_NEARLY, _HARDLY = 0.75, 0.2
_UTIME, _STIME, _START_TIME = 11, 12, 19  # among the figures


def oom_kills() -> int | None:
    """By the kernel's OOM killer since the machine started, in any control group. It counts before
    it kills, so before anybody can see the end. None where that can't be read."""
    lines = contents("/proc/vmstat") or b""
    _, _, rest = lines.partition(b"\noom_kill ")
    count = rest.partition(b"\n")[0]
    return int(count) if count.isdigit() else None


def used_up_cpu_limit(pid: int, start_time: int) -> int | None:
    """Its hard RLIMIT_CPU in seconds where it has used that up, which is all that tells of it, and
    0 where it hasn't. None where nobody knows: its parent may have reaped it by now."""
    figures = procfs.figures(pid)
    if figures is None or int(figures[_START_TIME]) != start_time:
        return None
    try:
        _soft, hard = resource.prlimit(pid, resource.RLIMIT_CPU)
    except (OSError, ValueError):
        return None
    # The kernel holds ticks against the limit, and shows what the scheduler has measured: they are
    # some percent apart, and on a busy machine much more.
    used_s = (int(figures[_UTIME]) + int(figures[_STIME])) / _TICKS_PER_S
    if hard == _NO_LIMIT or used_s < hard * _HARDLY:
        return 0
    return hard if used_s >= hard * _NEARLY else None
