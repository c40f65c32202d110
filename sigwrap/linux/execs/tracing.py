"""Who traces the caller of an exec, and whether and where it stops after that before it runs.

By PTRACE_O_TRACEEXEC it does, or by a SIGTRAP that the kernel sends where that isn't asked for. Who
was traced by PTRACE_SEIZE gets no such signal, but nobody seizes without the option here.
"""

from __future__ import annotations

from sigwrap.bare import signal
from sigwrap.bare.enum import Enum
from sigwrap.calls import EXECS
from sigwrap.linux import procfs
from sigwrap.mediate.lineage import Process

_WAITING_FOR_OTHER_THREADS = ("begin_new_exec", "de_thread")  # the kernel's functions
_ENDED = ("", "Z", "X")
_DEAF = "the caller is traced and blocks SIGTRAP"


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
    """Whether `number` is still the thread that led the process of `tid`, stopped before its end:
    so the exec of `tid`, which is to get its number, can't be over before it goes on. From any
    other stop it was woken when the kernel began to wait for its end."""
    if number != process.pid or tid == process.pid:
        return False
    kernel_waits = procfs.waits_in(process.pid, tid) in _WAITING_FOR_OTHER_THREADS
    return kernel_waits and procfs.thread_state(process.pid, number) == "t"


class Where(Enum):
    UNDERWAY = "its exec has not finished"
    FAILED = "its exec failed"
    LOADED = "it is at the first instruction of its new image"
    ENDED = "it has ended or is ending"


def where(pid: int, tid: int) -> Where:
    """Of a thread at an exec whose tracer stands: so whoever stops stays there. Neither its memory
    nor another thread of its process can make this look otherwise."""
    threads = procfs.threads(pid)
    alone = threads == [pid]
    number = tid if tid in threads else pid if alone else 0  # by its exec it gets its leader's
    if not number:
        return Where.UNDERWAY if threads else Where.ENDED
    known = procfs.call_and_arguments(pid, number)
    state = procfs.thread_state(pid, number)  # after its call: if the number changed hands, it ends
    if state in _ENDED:
        return Where.ENDED if number == pid or _both_ended(pid, tid) else Where.UNDERWAY
    if state == "t":
        known = procfs.call_and_arguments(pid, number)
        if known is None or _is_at_its_start(pid, *known):
            return Where.LOADED if procfs.threads(pid) == [pid] else Where.UNDERWAY
        return Where.FAILED
    left = known is not None and known[0] not in EXECS
    return Where.FAILED if left and number == tid else Where.UNDERWAY


def _is_at_its_start(pid: int, number: int, words: tuple[int, ...]) -> bool:
    """The kernel clears its registers for the new image; the call's path was one of them. At the
    stop for a signal aarch64 knows of no call any more, and shows the stack's pointer instead: to
    begin with, that is where the stack begins. Who leads a failed exec there is compared, too."""
    if number in EXECS:
        return not any(words)
    if not words:
        return False
    found = procfs.stat(pid)
    return found is not None and found.image[1:2] in ((), words[:1])


def _both_ended(pid: int, tid: int) -> bool:
    """A thread and its leader. For a moment of its exec a thread's number is its former leader's,
    which has ended; that number is gone before the thread stops by its new one."""
    leader = procfs.thread_state(pid, pid)
    return leader in _ENDED or (leader == "t" and procfs.thread_state(pid, tid) in ("Z", "X"))


def is_about_to_end(tid: int) -> bool:
    """Then it stops no more, or not where it says."""
    found = procfs.stat(tid)
    return found is None or found.is_exiting or procfs.numbers(tid, "CoreDumping") == [1]
