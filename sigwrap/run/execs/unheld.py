"""An exec that could not be held, because somebody else traces the caller, is watched.

Where sigwrap holds the tracer (held_tracers.py), the caller stops before the first instruction of
its new image, and stays there until that has been held against what was judged.

Else a process of the outside is the tracer, and nothing stops the new image. But what it loads can
be seen: the file, where stack and code lie, the arguments. As soon as they are others than before
the exec, they are held against what was judged, and who has loaded something else is killed.

That is looked at without a pause for as long as most execs take, then after longer and longer ones,
and whenever the process asks for its next exec.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from sigwrap.bare import signal
from sigwrap.calls import EXECS
from sigwrap.hints import TYPE_CHECKING
from sigwrap.linux import procfs
from sigwrap.linux.execs import image
from sigwrap.linux.execs.executable import Executable
from sigwrap.linux.execs.tracing import Where, where
from sigwrap.mediate.effects import ExecOutcome, LoadedOther, Ran
from sigwrap.mediate.lineage import Process
from sigwrap.run.perform import Scope

if TYPE_CHECKING:
    from sigwrap.run.mediation import Mediation
    from sigwrap.run.session import Session

_MOST_EXECS_TAKE_NS = 500_000
_FIRST_PAUSE_S = 0.001
_LONGEST_PAUSE_S = 0.1
_LONGEST_HELD_PAUSE_S = 0.005
_STANDS_AT_MOST_S = 10.0
_TAKES_TOO_LONG = "its exec took too long while its tracer was stopped"
_TRACER_ENDED = "its tracer ended before sigwrap could compare the loaded image"
_RAN_MEANWHILE = "; its caller was traced, so it may have run for a moment"


class _Exec:
    __slots__ = (
        "before",
        "is_over",
        "judged",
        "meanwhile",
        "pause_s",
        "process",
        "scope",
        "tid",
        "until_s",
    )

    def __init__(
        self, scope: Scope, judged: Executable, meanwhile: Callable[[], None] | None
    ) -> None:
        self.scope = scope
        self.tid = scope.tid
        self.process = scope.process
        self.judged = judged
        self.meanwhile = meanwhile  # where its tracer stands
        self.until_s = time.monotonic() + _STANDS_AT_MOST_S
        self.before = image.state(scope.process.pid, judged) if meanwhile is None else None
        self.pause_s = _FIRST_PAUSE_S
        self.is_over = False

    def may_be_over(self) -> bool:
        if self.meanwhile is None:
            return image.file(self.process.pid, self.judged) != (self.before and self.before.file)
        return procfs.thread_state(self.process.pid, self.process.pid) == "t"


class Unheld:
    def __init__(self, session: Session, mediation: Mediation) -> None:
        self._performer = mediation.performer
        self._processes = session.processes
        self._loop = session.loop
        self._turns = session.turns
        self._by_pid: dict[int, _Exec] = {}

    def go_on(
        self,
        scope: Scope,
        judged: Executable,
        answer: Callable[[], None],
        meanwhile: Callable[[], None] | None = None,
    ) -> None:
        """The mediator is resumed when the exec is over. `meanwhile` is given where the caller's
        tracer stands, and called now and then."""
        unheld = _Exec(scope, judged, meanwhile)
        self._by_pid[scope.process.pid] = unheld
        self._turns.take(scope.process)
        answer()
        until_ns = time.perf_counter_ns() + _MOST_EXECS_TAKE_NS
        while time.perf_counter_ns() < until_ns and not unheld.is_over:
            os.sched_yield()
            if unheld.may_be_over():
                self._look(unheld)
        if not unheld.is_over:
            self._look_later(unheld)

    def is_other(self, process: Process, tid: int) -> bool:
        """Whether a process that asks for an exec was found out by that: then it is killed."""
        unheld = self._by_pid.get(process.pid)
        if unheld is None or unheld.process is not process:
            return False
        if self._look(unheld):
            return True
        if unheld.tid == tid and not unheld.is_over:
            self._settle(unheld)  # its last exec has failed, or it wouldn't ask again
        return False

    def look_at(self, scope: Scope) -> None:
        unheld = self._of(scope)
        if unheld is not None:
            self._look(unheld)

    def is_lost(self, scope: Scope) -> None:
        """The caller's tracer ends, so nothing keeps what is loaded from running."""
        unheld = self._of(scope)
        if unheld is not None:
            self._kill(unheld, _TRACER_ENDED)

    def takes_too_long(self, scope: Scope) -> None:
        """Its tracer can't stand for ever."""
        unheld = self._of(scope)
        if unheld is not None:
            self._kill(unheld, _TAKES_TOO_LONG)

    def _of(self, scope: Scope) -> _Exec | None:
        unheld = self._by_pid.get(scope.process.pid)
        return unheld if unheld is not None and unheld.scope is scope else None

    def _look_later(self, unheld: _Exec) -> None:
        def look() -> None:
            if not unheld.is_over:
                self._look(unheld)
            if not unheld.is_over and unheld.meanwhile is not None:
                unheld.meanwhile()
            if not unheld.is_over:
                self._look_later(unheld)

        self._loop.call_at(time.monotonic() + unheld.pause_s, look)
        longest_s = _LONGEST_PAUSE_S if unheld.meanwhile is None else _LONGEST_HELD_PAUSE_S
        unheld.pause_s = min(2 * unheld.pause_s, longest_s)

    def _look(self, unheld: _Exec) -> bool:
        """Whether it was killed."""
        if unheld.meanwhile is None:
            return self._look_from_outside(unheld)
        match where(unheld.process.pid, unheld.tid):
            case Where.UNDERWAY if time.monotonic() > unheld.until_s:
                self._kill(unheld, _TAKES_TOO_LONG)
                return True
            case Where.UNDERWAY:
                return False
            case Where.FAILED:
                self._settle(unheld)
                return False
            case Where.ENDED:
                self._end(unheld, None)
                return False
            case Where.LOADED:
                return self._decide(unheld, _difference(unheld))

    def _look_from_outside(self, unheld: _Exec) -> bool:
        pid = unheld.process.pid
        left_the_call = not _may_be_in_an_exec(pid, unheld.tid)  # so that the state is newer
        found = procfs.stat(pid)
        if found is None or found.has_ended or found.start_time != unheld.process.start_time:
            self._end(unheld, None)
            return False
        state = image.state(pid, unheld.judged)
        if state == unheld.before:
            if left_the_call:
                self._settle(unheld)
            return False
        if state is None or state.is_half_loaded:
            return False
        problem = _difference(unheld)
        if problem and image.state(pid, unheld.judged) != state:
            return False  # it ends, or the kernel is still loading
        return self._decide(unheld, problem and problem + _RAN_MEANWHILE)

    def _decide(self, unheld: _Exec, problem: str) -> bool:
        if problem:
            self._kill(unheld, problem)
        else:
            self._processes.loaded(unheld.process, unheld.judged.verified_image)
            self._settle(unheld)
        return bool(problem)

    def _kill(self, unheld: _Exec, problem: str) -> None:
        other = LoadedOther(problem, *image.shown(unheld.process.pid))
        try:
            os.kill(unheld.process.pid, signal.SIGKILL)  # before it is recorded: it may run
        except ProcessLookupError:
            pass
        self._end(unheld, other)

    def _settle(self, unheld: _Exec) -> None:
        self._end(unheld, Ran())

    def _end(self, unheld: _Exec, outcome: ExecOutcome | None) -> None:
        """None: its caller has ended."""
        unheld.is_over = True
        del self._by_pid[unheld.process.pid]
        if outcome is None:
            self._performer.drop(unheld.scope)
        else:
            self._performer.resume(unheld.scope, outcome)
        self._turns.give_back(unheld.process)


def _difference(unheld: _Exec) -> str:
    quick = not unheld.judged.is_read_slowly()  # nothing waits for it
    return image.difference(unheld.process.pid, unheld.judged, files_too=quick)


def _may_be_in_an_exec(pid: int, tid: int) -> bool:
    number = procfs.call_of(pid, tid)
    return number is None or number in EXECS
