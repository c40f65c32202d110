"""Verify execs of callers that another process of the session traces.

A process has one tracer, so sigwrap cannot seize such a caller. But the caller stops after its
exec, and only its tracer can continue it. So sigwrap seizes the tracer before the exec goes on,
compares the loaded image while the caller is stopped before its first instruction, and releases the
tracer.

The tracer need not have stopped: sigwrap has asked it to, so it cannot leave its current system
call. A debugger that waits in vfork stops only after the exec of its child. A ptrace call could
continue the caller, so then sigwrap waits until the tracer has stopped.

When a tracer ends, the kernel lets its tracees run on. The tracer stops before that, and sigwrap
kills the callers whose image it has not compared. A SIGKILL would end this stop early if another
thread of the tracer's process dumps core or makes an exec. So sigwrap stops all its threads.

A caller that was attached by PTRACE_ATTACH or PTRACE_TRACEME stops after its exec. With
PTRACE_O_TRACEEXEC it stops for an event, otherwise by a SIGTRAP that the kernel sends. The filter
refuses PTRACE_SEIZE, because a seized process does not stop without that option.
"""

from __future__ import annotations

import os
import time

from sigwrap.bare import TYPE_CHECKING, Enum, signal
from sigwrap.calls import EXECS, EXITS, PTRACE_CALLS
from sigwrap.errors import KernelError
from sigwrap.exec import verify
from sigwrap.exec.executable import Executable
from sigwrap.exec.verify import tracer_of
from sigwrap.kernel import procfs, ptrace, signals
from sigwrap.kernel.ptrace import Gone, NotTraceable
from sigwrap.session.effects import (
    CannotHold,
    ContinueWatched,
    ExecOutcome,
    Held,
    LoadedOther,
    Ran,
)
from sigwrap.session.lineage import Process
from sigwrap.session.perform import PAUSED, Request

if TYPE_CHECKING:
    from sigwrap.session.mediation import Mediation
    from sigwrap.session.session import Session

_TRACED_BY_US = "the caller has made sigwrap its tracer"
_READ_SLOWLY = "the caller is traced, and reading its program takes too long"
_HAS_THREADS = "the caller is traced and has other threads"
_BLOCKS = "the caller is traced and blocks SIGTRAP"
_TRACED_THREADS = "other threads of the caller are traced as well"
_ITSELF_TRACED = "the caller's tracer is traced itself, or sigwrap may not read it"
_TAKES_TOO_LONG = "its exec took too long while its tracer was stopped"
_TRACER_ENDED = "its tracer ended before sigwrap could compare the loaded image"
_MANY_THREADS = "the caller's tracer has too many threads"
_MOST_THREADS = 1000
_MOST_LOOKS = 10
_LOOK_AGAIN_S = 0.002
_MOST_EXECS_TAKE_S = 0.0005
_PAUSE_S = 0.001
_TAKES_AT_MOST_S = 10.0
_ENDED = ("", "Z", "X")
_ENDS = 0x404  # PF_EXITING, PF_SIGNALED: a signal is ending it


class _Thread:
    __slots__ = ("is_ending", "is_stopped", "signal", "tid", "tracer")

    def __init__(self, tid: int, tracer: HeldTracer) -> None:
        self.tid = tid
        self.tracer = tracer
        self.is_stopped = False
        self.is_ending = False
        self.signal = 0  # which it was about to get when it stopped

    @property
    def cannot_run(self) -> bool:
        if self.is_stopped or self.is_ending:
            return self.is_stopped
        call = procfs.call_of(self.tracer.process.pid, self.tid)
        if call is None or call < 0 or call in PTRACE_CALLS or call in EXITS:
            return False
        return not _is_about_to_end(self.tid)


class HeldTracer:
    """A process with threads that trace callers, held for the exec of one caller at a time."""

    __slots__ = ("judged", "process", "request", "threads", "tid", "until_s", "waiting")

    def __init__(self, process: Process) -> None:
        self.process = process
        self.threads: dict[int, _Thread] = {}  # that sigwrap has seized
        self.request: Request | None = None  # the exec
        self.tid = 0  # the thread that traces its caller
        self.judged: Executable | None = None  # while the exec goes on
        self.until_s = 0.0
        self.waiting: list[Request] = []  # execs of its other callers

    @property
    def cannot_run(self) -> bool:
        pid = self.process.pid
        return all(
            thread.cannot_run or procfs.thread_state(pid, thread.tid) in _ENDED
            for thread in self.threads.values()
        )


class TracedExecs:
    """Execs of callers that another process traces, so that sigwrap cannot."""

    def __init__(self, session: Session, mediation: Mediation) -> None:
        self._performer = mediation.performer
        self._loop = session.loop
        self._turns = session.exec_turns
        self._restarts = mediation.restarts
        self._processes = session.processes
        self._tracers: dict[int, HeldTracer] = {}  # by pid
        self._threads: dict[int, _Thread] = {}  # of all of them

    def hold(self, request: Request, tid: int) -> object:
        """Keep the caller's tracer, thread `tid`, from running. The reply to Hold, or PAUSED."""
        process = self._processes.of_thread(tid)
        if tid == os.getpid():  # by PTRACE_TRACEME; sigwrap releases it at its next stop
            return CannotHold(_TRACED_BY_US)
        if process is None and tracer_of(request.tid) != tid:  # the tracer has just ended
            return self._later(request)
        if process is None:
            held: object = Held.NO
        elif request.holdings.executable.is_read_slowly():
            held = CannotHold(_READ_SLOWLY)
        else:
            held = self._hold_process(request, tid, process)
        if held is Held.NO or isinstance(held, CannotHold):
            request.holdings.free_tracer()
            if len(procfs.threads(request.process.pid)) > 1:
                # PTRACE_SEIZE of another thread would wait until this exec is over.
                return CannotHold(_HAS_THREADS, may_run=False)
        return held

    def _hold_process(self, request: Request, tid: int, process: Process) -> object:
        problem = _why_it_would_run_on(request.tid, request.process)
        if problem:
            return CannotHold(problem)
        tracer = self._tracers.get(process.pid)
        if request.holdings.held_tracer is not tracer:
            request.holdings.free_tracer()
        if tracer is None:
            if self._turns.is_busy(process):
                self._turns.wait_behind(process, request, Held.AGAIN)
                return PAUSED
            tracer = self._tracers[process.pid] = HeldTracer(process)
            self._turns.take(process)
        elif tracer.request not in (None, request):
            tracer.waiting.append(request)
            return PAUSED
        tracer.request, tracer.tid = request, tid
        request.holdings.held_tracer = tracer
        for _ in range(_MOST_LOOKS):
            can_run = not tracer.cannot_run  # looked at first: then it makes no more threads
            tids = procfs.threads(process.pid)
            new = [each for each in tids if each not in tracer.threads]
            if process.pid in new and procfs.thread_state(process.pid, process.pid) in _ENDED:
                new.remove(process.pid)  # a leader stays until the other threads have ended
            if not new:
                break
            other_reply = self._seize(tracer, new, request)
            if other_reply is not None:
                request.holdings.free_tracer()
                return other_reply
        found, thread = procfs.stat(process.pid), tracer.threads.get(tid)
        is_all = not new and found is not None and found.threads == len(tids)
        if is_all and not can_run and thread is not None and thread.cannot_run:
            return Held.BY_ITS_TRACER
        return self._later(request)

    def go_on(self, request: Request, effect: ContinueWatched) -> None:
        """Let an exec go on. The mediator is resumed when the exec is over."""
        self._performer.continue_call(request, effect)
        tracer: HeldTracer = request.holdings.held_tracer
        tracer.judged = request.holdings.executable
        tracer.until_s = time.monotonic() + _TAKES_AT_MOST_S
        self._turns.take(request.process)
        pid, until_s = request.process.pid, time.monotonic() + _MOST_EXECS_TAKE_S
        while procfs.thread_state(pid, pid) != "t" and time.monotonic() < until_s:
            os.sched_yield()
        self._look(request)

    # The exec

    def execs_again(self, process: Process, tid: int) -> None:
        """End an exec that goes on if its thread makes another one: the kernel has refused it.

        The next one waits for its end, and looks the same in /proc.
        """
        for tracer in self._tracers.values():
            request = tracer.request
            if request is None or tracer.judged is None:
                continue
            if request.process is not process or request.tid != tid:  # an exec frees a thread's id
                continue
            if _is_about_to_end(tracer.tid):  # it may not have stopped the new image
                self._kill(request, _TRACER_ENDED)
            else:
                self._end(request, Ran())
            return

    def _look(self, request: Request) -> None:
        """Look how far an exec has got, until it is over."""
        tracer: HeldTracer | None = request.holdings.held_tracer
        if tracer is None or tracer.judged is None:
            return
        process = request.process
        match _progress_of(process.pid, request.tid):
            case _Progress.LOADED:
                problem = verify.difference(process.pid, tracer.judged)
                if problem:
                    self._kill(request, problem)
                else:
                    self._processes.loaded(process, tracer.judged.verified_image)
                    self._end(request, Ran())
            case _Progress.FAILED:
                self._end(request, Ran())
            case _Progress.ENDED:
                self._end(request, None)
            case _Progress.UNDERWAY if time.monotonic() > tracer.until_s:
                self._kill(request, _TAKES_TOO_LONG)
            case _Progress.UNDERWAY if _is_about_to_end(tracer.tid):
                self._kill(request, _TRACER_ENDED)
            case _Progress.UNDERWAY:
                self._loop.call_in(_PAUSE_S, self._look, request)

    def _kill(self, request: Request, problem: str) -> None:
        pid = request.process.pid
        other = LoadedOther(problem, *verify.shown(pid))
        try:
            os.kill(pid, signal.SIGKILL)  # before the record, because its tracer may have ended
        except ProcessLookupError:
            pass
        self._end(request, other)

    def _end(self, request: Request, outcome: ExecOutcome | None) -> None:
        """Finish the exec. `outcome` is None if the caller has ended."""
        if outcome is None:
            self._performer.finish(request)
        else:
            self._performer.resume(request, outcome)
        self._turns.give_back(request.process)

    # The tracer

    def _later(self, request: Request) -> object:
        return self._performer.wake_at(time.monotonic() + _LOOK_AGAIN_S, request, Held.AGAIN)

    def _seize(self, tracer: HeldTracer, tids: list[int], request: Request) -> object:
        """Seize threads. The reply to Hold if that is not possible, otherwise None."""
        pid = tracer.process.pid
        if len(tracer.threads) + len(tids) > _MOST_THREADS:
            return CannotHold(_MANY_THREADS)
        if any(procfs.call_of(pid, tid) in EXECS for tid in tids):
            return self._later(request)  # that exec is held, and may wait for an approval
        for tid in tids:
            try:
                ptrace.seize(tid, ptrace.TO_ITS_END)
                self._threads[tid] = tracer.threads[tid] = _Thread(tid, tracer)
                ptrace.interrupt(tid)
            except (Gone, NotTraceable):
                # Sigwrap itself may trace it for its signals; or it has ended.
                if self._restarts.let_go(tid) or tracer_of(request.tid) != tracer.tid:
                    return self._later(request)
                if not _is_about_to_end(tid):
                    return CannotHold(_ITSELF_TRACED)
        return None

    def let_go(self, tracer: HeldTracer) -> None:
        """Let a tracer run. A thread that has not stopped yet runs on at its stop."""
        tracer.request = tracer.judged = None
        for thread in tuple(tracer.threads.values()):
            if thread.is_stopped:
                thread.is_stopped = False
                try:
                    ptrace.detach(thread.tid, thread.signal)
                except KernelError:
                    continue  # it was killed at its stop; wait reports its end
                self._forget(thread)
            elif thread.is_ending and thread.tid == tracer.process.pid:
                self._forget(thread)  # wait reports its end after those of the other threads
        self._forget_if_free(tracer)
        waiting, tracer.waiting = tracer.waiting, []
        for request in waiting:
            self._performer.wake(request, Held.AGAIN)

    def _forget(self, thread: _Thread) -> None:
        del self._threads[thread.tid], thread.tracer.threads[thread.tid]

    def _forget_if_free(self, tracer: HeldTracer) -> None:
        pid = tracer.process.pid
        if not tracer.threads and self._tracers.get(pid) is tracer:
            del self._tracers[pid]
            self._turns.give_back(tracer.process)

    def on_stop(self, tid: int, wait_status: int) -> bool:
        """Return whether the stop is that of a tracer."""
        thread = self._threads.get(tid)
        if thread is None or os.WIFCONTINUED(wait_status):
            return False
        event, number = wait_status >> 16, os.WSTOPSIG(wait_status)
        if event == ptrace.EVENT_EXIT:
            self._ends(thread)
            return True
        thread.signal = 0 if event or number == ptrace.SYSCALL_STOP else number
        try:
            ptrace.make_again(tid, wait_status)
        except KernelError:
            pass  # it was killed at its stop
        thread.is_stopped = True
        if thread.tracer.request is None:
            self.let_go(thread.tracer)
        return True

    def on_end(self, tid: int) -> None:
        thread = self._threads.get(tid)
        if thread is not None:
            self._kill_unverified(thread)
            self._forget(thread)
            self._forget_if_free(thread.tracer)

    def _ends(self, thread: _Thread) -> None:
        thread.is_stopped, thread.is_ending = False, True
        self._kill_unverified(thread)
        try:
            ptrace.resume(thread.tid)
        except KernelError:
            pass  # wait reports its end

    def _kill_unverified(self, thread: _Thread) -> None:
        tracer = thread.tracer
        if tracer.request is not None and tracer.judged is not None and tracer.tid == thread.tid:
            self._kill(tracer.request, _TRACER_ENDED)


def _why_it_would_run_on(tid: int, process: Process) -> str:
    """Return why the caller would not stop after its exec while its tracer is stopped, or "".

    An exec waits until the other threads of the process are gone. A traced one is gone only when
    its tracer has reaped it.
    """
    if signals.blocks(tid, signal.SIGTRAP):
        return _BLOCKS
    others = (each for each in procfs.threads(process.pid) if each != tid)
    return _TRACED_THREADS if any(map(tracer_of, others)) else ""


class _Progress(Enum):
    UNDERWAY = "its exec has not finished"
    FAILED = "its exec failed"
    LOADED = "it is at the first instruction of its new image"
    ENDED = "it has ended or is ending"


def _progress_of(pid: int, tid: int) -> _Progress:
    """Return how far the exec of a thread has got, whose tracer is stopped.

    A thread that stops stays stopped, so neither its memory nor another thread can change the
    answer.
    """
    threads = procfs.threads(pid)
    alone = threads == [pid]
    number = tid if tid in threads else pid if alone else 0  # an exec gives it the leader's id
    if not number:
        return _Progress.UNDERWAY if threads else _Progress.ENDED
    known = procfs.call_and_arguments(pid, number)
    state = procfs.thread_state(pid, number)  # after its call: a thread that lost its id has ended
    if state in _ENDED:
        return _Progress.ENDED if number == pid or _both_ended(pid, tid) else _Progress.UNDERWAY
    if state == "t":
        known = procfs.call_and_arguments(pid, number)
        if known is None or _is_at_its_start(pid, *known):
            return _Progress.LOADED if procfs.threads(pid) == [pid] else _Progress.UNDERWAY
        return _Progress.FAILED
    left = known is not None and known[0] not in EXECS
    return _Progress.FAILED if left and number == tid else _Progress.UNDERWAY


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
    return leader in _ENDED or (leader == "t" and procfs.thread_state(pid, tid) in ("Z", "X"))


def _is_about_to_end(tid: int) -> bool:
    """Return whether the thread ends, so that it may stop no more."""
    figures = procfs.figures(tid)
    is_ending = figures is None or bool(int(figures[6]) & _ENDS)
    return is_ending or procfs.numbers(tid, "CoreDumping") == [1]
