"""Read from /proc who traces the caller of an exec, and how far that exec has got.

A process that was attached by PTRACE_ATTACH or PTRACE_TRACEME stops after its exec. With
PTRACE_O_TRACEEXEC it stops for an event, otherwise by a SIGTRAP that the kernel sends. The filter
refuses PTRACE_SEIZE, because a seized process does not stop without that option.
"""

from __future__ import annotations

from sigwrap.bare import Enum, signal
from sigwrap.calls import EXECS
from sigwrap.kernel import procfs, signals
from sigwrap.session.lineage import Process

ENDED = ("", "Z", "X")
_ENDS = 0x404  # PF_EXITING, PF_SIGNALED: a signal is ending it
_BLOCKS = "the caller is traced and blocks SIGTRAP"
_THREADS = "other threads of the caller are traced as well"


def tracer_of(tid: int) -> int:
    """Return the thread id of the tracer, or 0."""
    return next(iter(procfs.numbers(tid, "TracerPid")), 0)


def why_it_cannot_wait(tid: int, process: Process) -> str:
    """Return why the caller would not stop after its exec while its tracer is stopped, or "".

    An exec waits until the other threads of the process are gone. A traced one is gone only when
    its tracer has reaped it.
    """
    if signals.blocks(tid, signal.SIGTRAP):
        return _BLOCKS
    others = (each for each in procfs.threads(process.pid) if each != tid)
    return _THREADS if any(map(tracer_of, others)) else ""


class Progress(Enum):
    UNDERWAY = "its exec has not finished"
    FAILED = "its exec failed"
    LOADED = "it is at the first instruction of its new image"
    ENDED = "it has ended or is ending"


def progress_of(pid: int, tid: int) -> Progress:
    """Return how far the exec of a thread has got, whose tracer is stopped.

    A thread that stops stays stopped, so neither its memory nor another thread can change the
    answer.
    """
    threads = procfs.threads(pid)
    alone = threads == [pid]
    number = tid if tid in threads else pid if alone else 0  # an exec gives it the leader's id
    if not number:
        return Progress.UNDERWAY if threads else Progress.ENDED
    known = procfs.call_and_arguments(pid, number)
    state = procfs.thread_state(pid, number)  # after its call: a thread that lost its id has ended
    if state in ENDED:
        return Progress.ENDED if number == pid or _both_ended(pid, tid) else Progress.UNDERWAY
    if state == "t":
        known = procfs.call_and_arguments(pid, number)
        if known is None or _is_at_its_start(pid, *known):
            return Progress.LOADED if procfs.threads(pid) == [pid] else Progress.UNDERWAY
        return Progress.FAILED
    left = known is not None and known[0] not in EXECS
    return Progress.FAILED if left and number == tid else Progress.UNDERWAY


def _is_at_its_start(pid: int, number: int, words: tuple[int, ...]) -> bool:
    """Return whether the thread is about to run its new image.

    The kernel clears the registers for that, and the path of the call was in one of them. At a stop
    for a signal aarch64 shows no call but the stack pointer, which then is where the stack begins.
    A failed exec that looks the same is compared as well, which does no harm.
    """
    if number in EXECS:
        return not any(words)
    if not words:
        return False
    found = procfs.stat(pid)
    return found is not None and found.image[1:2] in ((), words[:1])


def _both_ended(pid: int, tid: int) -> bool:
    """Return whether a thread and its leader have ended.

    During the exec, the thread's id belongs for a moment to the former leader, which has ended.
    That id is gone before the thread stops under its new one.
    """
    leader = procfs.thread_state(pid, pid)
    return leader in ENDED or (leader == "t" and procfs.thread_state(pid, tid) in ("Z", "X"))


def is_about_to_end(tid: int) -> bool:
    """Return whether the thread ends, so that it may stop no more."""
    figures = procfs.figures(tid)
    is_ending = figures is None or bool(int(figures[6]) & _ENDS)
    return is_ending or procfs.numbers(tid, "CoreDumping") == [1]
