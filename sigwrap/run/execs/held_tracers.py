"""Where one of the session traces the caller of an exec, the tracer is held in its place.

A process has one tracer, so sigwrap can't hold such a caller. But the caller stops after the exec,
and nobody but its tracer can send it on. So the tracer is seized and asked to stop, and let go when
what was loaded has been compared. It need not have stopped: in any call but ptrace it is kept from
running on by having been asked (a parent that waits in vfork stops only after its child's exec).
When it ends, the kernel sets free whom it traces; it stops before that, and those are killed.

Where the exec waits for threads of the caller's process that the tracer has to reap, that one runs,
from system call to system call, and stands at a ptrace call for the caller.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from sigwrap import calls
from sigwrap.calls import EXECS, EXITS, PTRACE_CALLS
from sigwrap.errors import KernelError
from sigwrap.linux import procfs, ptrace
from sigwrap.linux.execs.tracing import (
    has_to_be_reaped,
    is_about_to_end,
    is_its_leader,
    tracer_of,
    why_it_may_not_stop,
)
from sigwrap.linux.ptrace import Gone, NotTraceable
from sigwrap.mediate.effects import CannotHold, Held
from sigwrap.mediate.lineage import Process
from sigwrap.run.execs.turns import Turns
from sigwrap.run.execs.unheld import Unheld
from sigwrap.run.loop import Loop
from sigwrap.run.perform import PAUSED, Scope
from sigwrap.run.restarts import Restarts

_ITSELF_TRACED = "the caller's tracer is traced itself, or may not be looked into"
_COUNTS_OTHERWISE = "the caller is being traced, and its tracer is in a pid namespace of its own"
_NOT_STANDING = PTRACE_CALLS | EXITS
_EVERYBODY = -1
_LOOK_AGAIN_S = 0.02
_STANDS_AT_MOST_S = 1.0


class _Tracer:
    __slots__ = (
        "is_ending",
        "is_stopped",
        "process",
        "scopes",
        "signal",
        "steps",
        "tid",
        "waiting",
        "wants",
    )

    def __init__(self, tid: int, process: Process) -> None:
        self.tid = tid
        self.process = process
        self.scopes: set[Scope] = set()
        self.waiting: list[Callable[[], None]] = []  # until it stands, or has ended
        self.is_stopped = False
        self.is_ending = False
        self.steps = False  # it runs, and stops at each system call
        self.wants = 0  # for whom the ptrace call is that it stands at
        self.signal = 0  # that it was about to get when it stopped

    @property
    def stands(self) -> bool:
        if self.is_stopped or self.is_ending:
            return self.is_stopped
        call = procfs.call_of(self.process.pid, self.tid)
        if call is None or call < 0 or call in _NOT_STANDING:
            return False
        return not is_about_to_end(self.tid)

    @property
    def is_at_an_exec(self) -> bool:
        return procfs.call_of(self.process.pid, self.tid) in EXECS

    @property
    def counts_like_us(self) -> bool:
        return len(procfs.numbers(self.process.pid, "NSpid")) == 1

    def go_on_waiting(self) -> None:
        waiting, self.waiting = self.waiting, []
        for redo in waiting:
            redo()

    def exec_that_it_wants(self) -> Scope | None:
        for scope in self.scopes:
            wants_it = self.wants in (_EVERYBODY, scope.tid, scope.process.pid)
            if wants_it and not is_its_leader(self.wants, scope.tid, scope.process):
                return scope
        return None


class HeldTracers:
    def __init__(self, turns: Turns, loop: Loop, unheld: Unheld, restarts: Restarts) -> None:
        self._turns = turns
        self._loop = loop
        self._unheld = unheld
        self._restarts = restarts
        self._by_tid: dict[int, _Tracer] = {}

    def hold(self, scope: Scope, tid: int, process: Process, redo: Callable[[], None]) -> object:
        """Held.BY_ITS_TRACER or CannotHold; or PAUSED, and `redo` is called."""
        problem = why_it_may_not_stop(scope.tid)
        if problem:
            return CannotHold(problem)
        tracer = self._by_tid.get(tid)
        if tracer is None:
            if self._turns.is_taken(process):
                self._turns.put_off(process, redo)
                return PAUSED
            tracer = _Tracer(tid, process)
            if tracer.is_at_an_exec:  # which is to be held itself, and may wait for a person
                return self._later(redo)
            try:
                self._seize(tracer)
            except (Gone, NotTraceable):
                if self._restarts.let_go_soon(tid, redo):
                    return PAUSED
                if tracer_of(scope.tid) != tid:  # it has ended
                    return self._later(redo)
                return CannotHold(_ITSELF_TRACED)
        tracer.scopes.add(scope)
        scope.holdings.tracer_held = lambda: self._release(tracer, scope)
        if has_to_be_reaped(scope.tid, scope.process):
            if not tracer.counts_like_us:
                return CannotHold(_COUNTS_OTHERWISE)
            tracer.steps = tracer.steps or tracer.is_stopped
            if tracer.steps and tracer.stands:
                return Held.BY_ITS_TRACER
        elif tracer.stands:
            return Held.BY_ITS_TRACER
        tracer.waiting.append(redo)
        return PAUSED

    def goes_on(self, scope: Scope) -> None:
        """Its exec does."""
        tracer = self._of(scope)
        if tracer is not None and tracer.steps and tracer.is_stopped:
            self._step(tracer)

    def is_waited_for(self, scope: Scope) -> None:
        """The exec takes its time, and another thread may be the tracer's by now."""
        tracer = self._of(scope)
        if tracer is None:
            return
        if is_about_to_end(tracer.tid):
            self._unheld.is_lost(scope)
            return
        reaps = has_to_be_reaped(scope.tid, scope.process) and tracer.counts_like_us
        if reaps and tracer.is_stopped and not tracer.steps:
            tracer.steps = True
            self._step(tracer)

    def _of(self, scope: Scope) -> _Tracer | None:
        return next((each for each in self._by_tid.values() if scope in each.scopes), None)

    def _later(self, redo: Callable[[], None]) -> object:
        self._loop.call_at(time.monotonic() + _LOOK_AGAIN_S, redo)
        return PAUSED

    def _seize(self, tracer: _Tracer) -> None:
        ptrace.seize(tracer.tid, ptrace.TO_ITS_END)
        self._by_tid[tracer.tid] = tracer
        self._turns.take(tracer.process)
        ptrace.interrupt(tracer.tid)

    def _release(self, tracer: _Tracer, scope: Scope) -> None:
        tracer.scopes.discard(scope)
        if tracer.is_stopped:
            if not tracer.scopes:
                self._let_go(tracer)
            elif tracer.steps and tracer.exec_that_it_wants() is None:
                self._step(tracer)
        elif tracer.steps and not tracer.scopes:
            try:
                ptrace.interrupt(tracer.tid)
            except KernelError:
                pass  # its end will be reported

    def _let_go(self, tracer: _Tracer) -> None:
        tracer.is_stopped = False
        try:
            ptrace.detach(tracer.tid, tracer.signal)
        except KernelError:
            return  # it was killed out of its stop, and its end will be reported
        self._forget(tracer)

    def _step(self, tracer: _Tracer) -> None:
        tracer.is_stopped, tracer.wants = False, 0
        try:
            ptrace.resume_to_syscall(tracer.tid, tracer.signal)
        except KernelError:
            pass  # the same

    def _forget(self, tracer: _Tracer) -> None:
        del self._by_tid[tracer.tid]
        self._turns.give_back(tracer.process)

    # What wait reports

    def on_stop(self, tid: int, wait_status: int) -> bool:
        """Whether it is one of these."""
        tracer = self._by_tid.get(tid)
        if tracer is None or os.WIFCONTINUED(wait_status):
            return False
        event, number = wait_status >> 16, os.WSTOPSIG(wait_status)
        if event == ptrace.EVENT_EXIT:
            self._ends(tracer)
            return True
        is_at_a_call = not event and number == ptrace.SYSCALL_STOP
        tracer.signal = 0 if event or is_at_a_call else number
        _make_broken_off_call_again(tid, wait_status)
        tracer.is_stopped = True
        tracer.wants = _whom_it_wants(tid) if is_at_a_call else 0
        tracer.go_on_waiting()
        if tracer.is_stopped and not tracer.scopes:
            self._let_go(tracer)
        elif tracer.is_stopped and tracer.steps:
            self._step_unless_kept(tracer)
        return True

    def _step_unless_kept(self, tracer: _Tracer) -> None:
        scope = tracer.exec_that_it_wants()
        if scope is None:
            self._step(tracer)
            return
        self._unheld.look_at(scope)  # if it is over, this lets the tracer go on
        if not scope.is_over and scope.is_answered:
            self._loop.call_at(
                time.monotonic() + _STANDS_AT_MOST_S, lambda: self._unheld.takes_too_long(scope)
            )

    def on_end(self, tid: int) -> None:
        tracer = self._by_tid.get(tid)
        if tracer is not None:
            self._lose_those_that_go_on(tracer)
            self._forget(tracer)
            tracer.go_on_waiting()

    def _ends(self, tracer: _Tracer) -> None:
        tracer.is_stopped, tracer.is_ending = False, True
        self._lose_those_that_go_on(tracer)
        try:
            ptrace.resume(tracer.tid)
        except KernelError:
            pass  # its end will be reported

    def _lose_those_that_go_on(self, tracer: _Tracer) -> None:
        for scope in tuple(tracer.scopes):
            if scope.is_answered:
                self._unheld.is_lost(scope)


def _make_broken_off_call_again(tid: int, wait_status: int) -> None:
    try:
        ptrace.make_again(tid, wait_status)
    except KernelError:
        pass  # it was killed out of its stop


def _whom_it_wants(tid: int) -> int:
    """Of a tracer at a system call; 0 for nobody. An exec of its own has to wait for theirs."""
    try:
        begun = ptrace.syscall_begun(tid)
    except KernelError:
        return 0  # it was killed out of its stop
    if begun is None:
        return 0
    arch, number, _request, target = begun
    if number == calls.number_of("ptrace", arch):
        return target & 0xFFFFFFFF
    return _EVERYBODY if number in EXECS else 0
