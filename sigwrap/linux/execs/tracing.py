"""Who traces the caller of an exec, and whether it stops after that before it runs.

By PTRACE_O_TRACEEXEC it does, or by a SIGTRAP that the kernel sends where that isn't asked for. Who
was traced by PTRACE_SEIZE gets no such signal, but nobody seizes without the option here.
"""

from __future__ import annotations

import signal

from sigwrap.linux import procfs
from sigwrap.mediate.lineage import Process

_DEAF = "the caller is being traced, and blocks SIGTRAP"
_OTHER_THREADS = "the caller is being traced, and so are other threads of its process"


def tracer_of(tid: int) -> int:
    """Its thread id; 0 where there is none."""
    return next(iter(procfs.numbers(tid, "TracerPid")), 0)


def why_it_may_not_stop(tid: int, process: Process) -> str:
    """While its tracer stands. Empty where it stops."""
    if procfs.blocks(tid, signal.SIGTRAP):
        return _DEAF
    # The kernel waits for the other threads to go, and whom somebody traces goes only when that
    # one has reaped it.
    others = (each for each in procfs.threads(process.pid) if each != tid)
    return _OTHER_THREADS if any(map(tracer_of, others)) else ""
