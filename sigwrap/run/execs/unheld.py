"""An exec that could not be held, because somebody else traces the caller, is watched from outside.

A process has one tracer, so nothing stops the new image before its first instruction. But what it
loads can be seen: the file, where stack and code lie, the arguments. As soon as they are others
than before the exec, they are held against what was judged, and who has loaded something else is
killed. That is looked at without a pause for as long as most execs take, then after longer and
longer ones, and whenever the process asks for its next exec. Whoever keeps the kernel waiting with
the exec is watched meanwhile.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

from sigwrap.calls import EXECS
from sigwrap.linux import procfs
from sigwrap.linux.execs import image
from sigwrap.linux.execs.executable import Executable
from sigwrap.mediate.effects import LoadedOther, Ran
from sigwrap.mediate.lineage import Process
from sigwrap.run.loop import Loop
from sigwrap.run.perform import Performer, Scope

_MOST_EXECS_TAKE_NS = 500_000
_FIRST_PAUSE_S = 0.001
_LONGEST_PAUSE_S = 0.1
_RAN_MEANWHILE = "; its caller was traced, so it may have run for a moment"


class _Exec:
    __slots__ = ("before", "file_before", "is_over", "judged", "pause_s", "process", "scope", "tid")

    def __init__(self, scope: Scope, judged: Executable) -> None:
        self.scope = scope
        self.tid = scope.tid
        self.process = scope.process
        self.judged = judged
        self.before = image.state(scope.process.pid, judged)
        self.file_before = image.file(scope.process.pid)
        self.pause_s = _FIRST_PAUSE_S
        self.is_over = False


class Unheld:
    def __init__(self, performer: Performer, loop: Loop, loaded: Callable[[Process], None]) -> None:
        """`loaded` gets a process whose exec has succeeded."""
        self._performer = performer
        self._loop = loop
        self._loaded = loaded
        self._by_pid: dict[int, list[_Exec]] = {}

    def go_on(self, scope: Scope, judged: Executable, answer: Callable[[], None]) -> None:
        """The mediator is resumed when the exec is over."""
        unheld = _Exec(scope, judged)
        self._by_pid.setdefault(scope.process.pid, []).append(unheld)
        answer()
        until_ns = time.perf_counter_ns() + _MOST_EXECS_TAKE_NS
        while time.perf_counter_ns() < until_ns and not unheld.is_over:
            os.sched_yield()
            if image.file(scope.process.pid) != unheld.file_before:
                self._look(unheld)
        if not unheld.is_over:
            self._look_later(unheld)

    def is_other(self, process: Process, tid: int) -> bool:
        """Whether a process that asks for an exec was found out by that: then it is killed."""
        for unheld in tuple(self._by_pid.get(process.pid, ())):
            if unheld.process is process and not unheld.is_over:
                if self._look(unheld):
                    return True
                if unheld.tid == tid and not unheld.is_over:
                    self._settle(unheld)  # its last exec has failed, or it wouldn't ask again
        return False

    def _look_later(self, unheld: _Exec) -> None:
        def look() -> None:
            if not unheld.is_over:
                self._look(unheld)
            if not unheld.is_over:
                self._look_later(unheld)

        self._loop.call_at(time.monotonic() + unheld.pause_s, look)
        unheld.pause_s = min(2 * unheld.pause_s, _LONGEST_PAUSE_S)

    def _look(self, unheld: _Exec) -> bool:
        """Whether it was killed."""
        pid = unheld.process.pid
        left_the_call = not _may_be_in_an_exec(pid, unheld.tid)  # so that the state is newer
        found = procfs.stat(pid)
        if found is None or found.has_ended or found.start_time != unheld.process.start_time:
            self._forget(unheld)
            return False
        state = image.state(pid, unheld.judged)
        if state == unheld.before:
            if left_the_call:
                self._settle(unheld)
            return False
        if state is None or state.is_half_loaded:
            return False
        return self._compare(pid, unheld, state)

    def _compare(self, pid: int, unheld: _Exec, state: image.State) -> bool:
        """Which of its threads' execs it was isn't known where several have gone on."""
        problem = ""
        for each in self._by_pid[pid]:
            quick = not each.judged.is_read_slowly()  # nothing waits for it: it runs already
            problem = image.difference(pid, each.judged, files_too=quick)
            if not problem:
                self._loaded(each.process)
                self._settle_all(pid)
                return False
        if image.state(pid, unheld.judged) != state:
            return False  # it ends, or the kernel is still loading
        other = LoadedOther(problem + _RAN_MEANWHILE, *image.shown(pid))
        os.kill(pid, signal.SIGKILL)  # before it is recorded: it runs meanwhile
        self._remove(unheld)
        self._performer.resume(unheld.scope, other)
        self._settle_all(pid)
        return True

    def _settle_all(self, pid: int) -> None:
        for each in tuple(self._by_pid.get(pid, ())):
            self._settle(each)

    def _settle(self, unheld: _Exec) -> None:
        self._remove(unheld)
        self._performer.resume(unheld.scope, Ran())

    def _forget(self, unheld: _Exec) -> None:
        self._remove(unheld)
        self._performer.drop(unheld.scope)

    def _remove(self, unheld: _Exec) -> None:
        unheld.is_over = True
        pid = unheld.process.pid
        left = [each for each in self._by_pid[pid] if each is not unheld]
        if left:
            self._by_pid[pid] = left
        else:
            del self._by_pid[pid]


def _may_be_in_an_exec(pid: int, tid: int) -> bool:
    number = procfs.call_of(pid, tid)
    return number is None or number in EXECS
