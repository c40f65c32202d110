"""Who traces the caller of an exec, and whether it stops after that before it runs.

By PTRACE_O_TRACEEXEC it does, or by a SIGTRAP that the kernel sends where that isn't asked for. Who
was traced by PTRACE_SEIZE gets no such signal, but nobody seizes without the option here.
"""

from __future__ import annotations

import signal

from sigwrap.linux import procfs
from sigwrap.mediate.lineage import Process

_DEAF = "the caller is being traced, and blocks SIGTRAP"


def tracer_of(tid: int) -> int:
    """Its thread id; 0 where there is none."""
    return next(iter(procfs.numbers(tid, "TracerPid")), 0)


def why_it_may_not_stop(tid: int) -> str:
    """While its tracer stands. Empty where it stops."""
    return _DEAF if procfs.blocks(tid, signal.SIGTRAP) else ""


def has_to_be_reaped(tid: int, process: Process) -> bool:
    """An exec waits for the process's other threads to go, and one that somebody traces goes only
    when that one has reaped it."""
    others = (each for each in procfs.threads(process.pid) if each != tid)
    return any(map(tracer_of, others))


def is_its_leader(number: int, tid: int, process: Process) -> bool:
    """Whether `number` is still the thread that led the process of `tid`, and stands: so the exec
    of `tid`, which is to get its number, can't be over."""
    if number != process.pid or tid == process.pid:
        return False
    leader = procfs.stat(number)
    return (
        leader is not None and leader.state == "t" and procfs.exists(f"/proc/{number}/task/{tid}")
    )
