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
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from sigwrap.bare import TYPE_CHECKING, signal
from sigwrap.calls import EXECS, EXITS, PTRACE_CALLS
from sigwrap.errors import KernelError
from sigwrap.exec import verify
from sigwrap.exec.executable import Executable
from sigwrap.exec.tracing import (
    ENDED,
    Progress,
    is_about_to_end,
    progress_of,
    tracer_of,
    why_it_cannot_wait,
)
from sigwrap.kernel import procfs, ptrace
from sigwrap.kernel.ptrace import Gone, NotTraceable
from sigwrap.session.effects import CannotHold, ExecOutcome, Held, LoadedOther, Ran
from sigwrap.session.lineage import Process
from sigwrap.session.perform import PAUSED, Request

if TYPE_CHECKING:
    from sigwrap.session.mediation import Mediation
    from sigwrap.session.session import Session

_ITSELF_TRACED = "the caller's tracer is traced itself, or sigwrap may not read it"
_TAKES_TOO_LONG = "its exec took too long while its tracer was stopped"
_TRACER_ENDED = "its tracer ended before sigwrap could compare the loaded image"
_MANY_THREADS = "the caller's tracer has too many threads"
_MOST_THREADS = 1000
_MOST_LOOKS = 10
_LOOK_AGAIN_S = 0.02
_MOST_EXECS_TAKE_NS = 500_000
_FIRST_PAUSE_S = 0.001
_LONGEST_PAUSE_S = 0.005
_TAKES_AT_MOST_S = 10.0


class _Tracer:
    """A process with threads that trace callers."""

    __slots__ = ("process", "requests", "threads", "waiting")

    def __init__(self, process: Process) -> None:
        self.process = process
        self.threads: dict[int, _Thread] = {}  # that sigwrap has seized
        self.requests: dict[Request, int] = {}  # execs that it is held for, each with its tracer
        self.waiting: list[Request] = []  # until no thread can run

    @property
    def cannot_run(self) -> bool:
        pid = self.process.pid
        return all(
            thread.cannot_run or procfs.thread_state(pid, thread.tid) in ENDED
            for thread in self.threads.values()
        )


class _Thread:
    __slots__ = ("is_ending", "is_stopped", "signal", "tid", "tracer")

    def __init__(self, tid: int, tracer: _Tracer) -> None:
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
        return not is_about_to_end(self.tid)


class _Exec:
    __slots__ = ("is_over", "judged", "pause_s", "request", "tracer_tid", "until_s")

    def __init__(self, request: Request, judged: Executable, tracer_tid: int) -> None:
        self.request = request
        self.judged = judged
        self.tracer_tid = tracer_tid
        self.until_s = time.monotonic() + _TAKES_AT_MOST_S
        self.pause_s = _FIRST_PAUSE_S
        self.is_over = False


class TracedExecs:
    """Execs of callers that a process of the session traces, so that sigwrap cannot."""

    def __init__(self, session: Session, mediation: Mediation) -> None:
        self._performer = mediation.performer
        self._loop = session.loop
        self._turns = session.exec_turns
        self._restarts = mediation.restarts
        self._processes = session.processes
        self._tracers: dict[int, _Tracer] = {}  # by pid
        self._threads: dict[int, _Thread] = {}  # of all of them
        self._tracer_of: dict[Request, _Tracer] = {}
        self._execs: dict[Request, _Exec] = {}  # execs that go on

    def hold(self, request: Request, tid: int, process: Process) -> object:
        """Keep the tracer `tid` and its process from running: the reply to Hold, or PAUSED."""
        problem = why_it_cannot_wait(request.tid, request.process)
        if problem:
            return CannotHold(problem)
        tracer = self._tracers.get(process.pid)
        if self._tracer_of.get(request) is not tracer:
            request.holdings.free_tracer()
        if tracer is None:
            if self._turns.is_busy(process):
                self._turns.wait_behind(process, request, Held.AGAIN)
                return PAUSED
            tracer = self._tracers[process.pid] = _Tracer(process)
            self._turns.take(process)
        tracer.requests[request] = tid
        self._tracer_of[request] = tracer
        request.holdings.let_tracer_go = lambda: self._let_go_after(request)
        for _ in range(_MOST_LOOKS):
            can_run = not tracer.cannot_run  # looked at first: then it makes no more threads
            tids = procfs.threads(process.pid)
            new = [each for each in tids if each not in tracer.threads]
            if process.pid in new and procfs.thread_state(process.pid, process.pid) in ENDED:
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
        if not tracer.waiting:  # a call such as vfork may take longer than its child's exec
            self._loop.call_at(_soon(), lambda: self._wake_waiting(tracer))
        tracer.waiting.append(request)
        return PAUSED

    def go_on(self, request: Request, judged: Executable, answer: Callable[[], None]) -> None:
        """Let an exec go on. The mediator is resumed when the exec is over."""
        tracer = self._tracer_of[request]
        exec_ = self._execs[request] = _Exec(request, judged, tracer.requests[request])
        self._turns.take(request.process)
        answer()
        until_ns = time.perf_counter_ns() + _MOST_EXECS_TAKE_NS
        while time.perf_counter_ns() < until_ns and not exec_.is_over:
            os.sched_yield()
            if procfs.thread_state(request.process.pid, request.process.pid) == "t":
                self._look(exec_)
        if not exec_.is_over:
            self._look_later(exec_)

    # The exec

    def _look_later(self, exec_: _Exec) -> None:
        def look() -> None:
            if not exec_.is_over:
                self._look(exec_)
            if not exec_.is_over and is_about_to_end(exec_.tracer_tid):
                self._kill(exec_, _TRACER_ENDED)
            if not exec_.is_over:
                self._look_later(exec_)

        self._loop.call_at(time.monotonic() + exec_.pause_s, look)
        exec_.pause_s = min(2 * exec_.pause_s, _LONGEST_PAUSE_S)

    def _look(self, exec_: _Exec) -> None:
        process = exec_.request.process
        match progress_of(process.pid, exec_.request.tid):
            case Progress.UNDERWAY if time.monotonic() > exec_.until_s:
                self._kill(exec_, _TAKES_TOO_LONG)
            case Progress.UNDERWAY:
                pass
            case Progress.FAILED:
                self._end(exec_, Ran())
            case Progress.ENDED:
                self._end(exec_, None)
            case Progress.LOADED:
                problem = verify.difference(process.pid, exec_.judged)
                if problem:
                    self._kill(exec_, problem)
                else:
                    self._processes.loaded(process, exec_.judged.verified_image)
                    self._end(exec_, Ran())

    def _kill(self, exec_: _Exec, problem: str) -> None:
        pid = exec_.request.process.pid
        other = LoadedOther(problem, *verify.shown(pid))
        try:
            os.kill(pid, signal.SIGKILL)  # before the record, because its tracer may have ended
        except ProcessLookupError:
            pass
        self._end(exec_, other)

    def _end(self, exec_: _Exec, outcome: ExecOutcome | None) -> None:
        """Finish the exec. `outcome` is None if the caller has ended."""
        exec_.is_over = True
        del self._execs[exec_.request]
        if outcome is None:
            self._performer.finish(exec_.request)
        else:
            self._performer.resume(exec_.request, outcome)
        self._turns.give_back(exec_.request.process)

    # The tracer

    def _later(self, request: Request) -> object:
        return self._performer.wake_at(_soon(), request, Held.AGAIN)

    def _wake_waiting(self, tracer: _Tracer) -> None:
        waiting, tracer.waiting = tracer.waiting, []
        for request in waiting:
            self._performer.wake(request, Held.AGAIN)

    def _seize(self, tracer: _Tracer, tids: list[int], request: Request) -> object:
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
                if self._restarts.let_go_soon(tid, request, Held.AGAIN):
                    return PAUSED
                if tracer_of(request.tid) != tracer.requests[request]:  # it has ended
                    return self._later(request)
                if not is_about_to_end(tid):
                    return CannotHold(_ITSELF_TRACED)
        return None

    def _let_go_after(self, request: Request) -> None:
        """Release the tracer if this was its last exec. A thread that has not stopped yet runs on
        at its stop."""
        tracer = self._tracer_of.pop(request)
        del tracer.requests[request]
        if not tracer.requests:
            self._let_go(tracer)

    def _let_go(self, tracer: _Tracer) -> None:
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

    def _forget(self, thread: _Thread) -> None:
        del self._threads[thread.tid], thread.tracer.threads[thread.tid]

    def _forget_if_free(self, tracer: _Tracer) -> None:
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
        tracer = thread.tracer
        if not tracer.requests:
            self._let_go(tracer)
        elif tracer.cannot_run:
            self._wake_waiting(tracer)
        return True

    def on_end(self, tid: int) -> None:
        thread = self._threads.get(tid)
        if thread is not None:
            self._kill_unverified(thread)
            self._forget(thread)
            self._forget_if_free(thread.tracer)
            self._wake_waiting(thread.tracer)

    def _ends(self, thread: _Thread) -> None:
        thread.is_stopped, thread.is_ending = False, True
        self._kill_unverified(thread)
        try:
            ptrace.resume(thread.tid)
        except KernelError:
            pass  # wait reports its end

    def _kill_unverified(self, thread: _Thread) -> None:
        for request, tid in tuple(thread.tracer.requests.items()):
            exec_ = self._execs.get(request)
            if exec_ is not None and tid == thread.tid:
                self._kill(exec_, _TRACER_ENDED)


def _soon() -> float:
    return time.monotonic() + _LOOK_AGAIN_S
