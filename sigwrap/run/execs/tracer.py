"""Every exec that goes on is held until it has succeeded or failed, so that it can be compared.

The caller is seized while it waits in its notification and asked to stop, then let go on. Either
the exec succeeds, and the thread stops before the first instruction of the new image, where it is
compared and released or killed; or the kernel refuses it, and the stop that was asked for comes as
the thread returns, with the errno untouched. One of the two always comes, so nothing is waited for
and no exec is lost track of. (PTRACE_SYSCALL would tell of a refusal as well, but needs a stop
first, which a thread inside a notification can't have.)

One exec of a process at a time. PTRACE_SEIZE takes the mutex that an exec holds while it waits for
the process's other threads to go, and such a thread, if sigwrap traced it, goes only when sigwrap
reaps it: seizing a second thread could block the supervisor for good. So the requests of the other
threads are put off.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from sigwrap.bare import signal
from sigwrap.calls import EXECS
from sigwrap.errors import KernelError
from sigwrap.hints import TYPE_CHECKING
from sigwrap.linux import procfs, ptrace
from sigwrap.linux.execs import image
from sigwrap.linux.execs.environment import (
    Variables,
    add_to_new_image,
    keep_from_core,
)
from sigwrap.linux.execs.executable import Executable
from sigwrap.linux.execs.restage import Redirection
from sigwrap.linux.execs.tracing import tracer_of
from sigwrap.linux.memory import Unreadable
from sigwrap.linux.ptrace import Gone, NotTraceable
from sigwrap.linux.seccomp import Notification
from sigwrap.mediate.effects import KernelRefused, LoadedOther, Ran, Restarted, Tampered
from sigwrap.run.perform import Scope
from sigwrap.run.workers import Done, Late, Outcome, Raised

if TYPE_CHECKING:
    from sigwrap.run.mediation import Mediation
    from sigwrap.run.session import Session


class Tracee:
    """A thread that the supervisor traces, from its notification until its exec is over."""

    __slots__ = (
        "at_exec_stop",
        "is_refused",
        "judged",
        "may_dump_core",
        "process",
        "redirection",
        "scope",
        "tid",
        "variables",
    )

    def __init__(self, scope: Scope) -> None:
        self.tid = scope.tid
        self.process = scope.process
        self.scope = scope
        self.judged: Executable | None = None
        self.redirection: Redirection | None = None
        self.variables: Variables = ()  # for the new image's environment
        # Gets the pid, and says why the new image must not run, if so.
        self.at_exec_stop: Callable[[int], str] | None = None
        self.may_dump_core = True
        self.is_refused = False  # by sigwrap: the log doesn't say that it goes on


class Tracer:
    def __init__(self, session: Session, mediation: Mediation) -> None:
        self._mediation = mediation
        self._performer = mediation.performer
        self._processes = session.processes
        self._pool = session.pool
        self._turns = session.turns
        self._restarts = mediation.restarts
        self._waits_through_signals = session.facts.launched.waits_through_signals
        self._by_tid: dict[int, Tracee] = {}
        self._by_pid: dict[int, Tracee] = {}

    def holds(self, tid: int) -> bool:
        return tid in self._by_tid

    @property
    def redirects(self) -> bool:
        """Whether a call may come again as a new request."""
        return any(tracee.redirection is not None for tracee in self._by_tid.values())

    def take_back(self, notification: Notification) -> bool:
        """Whether it is the call of a thread that is held: the one that was restarted."""
        tracee = self._by_tid.get(notification.tid)
        if tracee is None:
            return False
        if tracee.redirection is None:
            self._forget(tracee)  # another thread of its process took its id
            return False
        self._performer.came_back(tracee.scope, notification.id)
        is_intact = tracee.redirection.is_intact(notification)
        self._performer.resume(tracee.scope, Restarted() if is_intact else Tampered())
        return True

    def hold(self, scope: Scope) -> Tracee:
        """Raises NotTraceable or Gone."""
        is_ours = scope.tid == scope.process.pid and self._restarts.hand_over(scope.tid)
        try:
            ptrace.seize(scope.tid)
        except NotTraceable:
            if not is_ours or tracer_of(scope.tid) != os.getpid():
                raise
        return self.held_already(scope)

    def held_already(self, scope: Scope) -> Tracee:
        """It was seized."""
        tracee = Tracee(scope)
        self._by_tid[scope.tid] = tracee
        self._by_pid[scope.process.pid] = tracee
        self._turns.take(scope.process)
        return tracee

    def go_on(self, tracee: Tracee, answer: Callable[[], None]) -> None:
        # Without WAIT_KILLABLE_RECV the interrupt would break off the notification itself. After
        # the answer it may come when the exec is already over: the exec stop calls it off.
        if self._waits_through_signals:
            _interrupt(tracee)
            answer()
        else:
            answer()
            _interrupt(tracee)

    def refused(self, tracee: Tracee) -> None:
        """Its call fails; it is let go as it returns."""
        tracee.is_refused = True
        _interrupt(tracee)

    def restart(self, tracee: Tracee, redirection: Redirection, answer: Callable[[], None]) -> None:
        """The call stops on its way out, is rewritten there, and comes back as a new request."""
        tracee.redirection = redirection
        _interrupt(tracee)
        answer()

    def _forget(self, tracee: Tracee) -> None:
        if self._by_tid.get(tracee.tid) is tracee:
            del self._by_tid[tracee.tid]
        is_its_turn = self._by_pid.get(tracee.process.pid) is tracee
        if is_its_turn:
            del self._by_pid[tracee.process.pid]
        self._performer.drop(tracee.scope)
        if is_its_turn:
            self._turns.give_back(tracee.process)

    # What wait reports

    def on_stop(self, pid: int, wait_status: int) -> bool:
        """Whether it is one of these."""
        if wait_status >> 16 == ptrace.EVENT_EXEC:
            self._on_exec(pid)
            return True
        tracee = self._by_tid.get(pid)
        if tracee is None or os.WIFCONTINUED(wait_status):
            return False
        try:
            done = self._on_other_stop(tracee, wait_status)
        except KernelError:  # it was killed out of its stop
            done = True
        except Exception as bug:
            self._kill(tracee.process.pid, tracee, bug)
            done = True
        if done:
            self._forget(tracee)
        return True

    def on_end(self, pid: int) -> None:
        tracee = self._by_tid.get(pid) or self._by_pid.get(pid)
        if tracee is not None:
            self._forget(tracee)

    def _on_exec(self, pid: int) -> None:
        """By now a thread that didn't lead its process has taken the leader's id; of each process
        one thread is held, so this is it."""
        self._restarts.on_end(pid)  # of the leader
        tracee = self._by_pid.get(pid)
        if tracee is None or tracee.judged is None:  # no exec that was let go on
            _kill(pid)
            if tracee is not None:
                self._forget(tracee)
        elif tracee.judged.is_read_slowly():
            self._compare_later(pid, tracee, tracee.judged)
        else:
            judged = tracee.judged
            self._decide(pid, tracee, lambda: image.difference(pid, judged))

    def _compare_later(self, pid: int, tracee: Tracee, judged: Executable) -> None:
        def then(outcome: Outcome) -> None:
            if self._by_pid.get(pid) is not tracee:
                return  # it was killed meanwhile
            match outcome:
                case Done(value=problem):
                    self._decide(pid, tracee, lambda: problem)
                case Late(why=why):
                    self._decide(pid, tracee, lambda: f"cannot read the loaded image: {why}")
                case Raised(error=error):
                    self._kill(pid, tracee, error)
                    self._forget(tracee)

        self._pool.run(lambda: image.difference(pid, judged), then)

    def _decide(self, pid: int, tracee: Tracee, difference: Callable[[], str]) -> None:
        try:
            self._run_or_kill(pid, tracee, difference())
        except (KernelError, ProcessLookupError):
            pass  # it was killed meanwhile
        except Exception as bug:
            self._kill(pid, tracee, bug)
        self._forget(tracee)

    def _kill(self, pid: int, tracee: Tracee, bug: Exception) -> None:
        """An error of sigwrap's own, at a stop: this one process ends of it."""
        _kill(pid)
        self._performer.broke(tracee.scope, bug)

    def _run_or_kill(self, pid: int, tracee: Tracee, problem: str) -> None:
        """`problem`: empty where the right program was loaded."""
        if not problem and not tracee.may_dump_core:
            problem = keep_from_core(pid)
        problem = problem or _set_environment(pid, tracee.variables)
        if not problem and tracee.at_exec_stop is not None:
            problem = tracee.at_exec_stop(pid)
        if not problem:
            judged = tracee.judged
            self._processes.loaded(
                tracee.process, None if judged is None else judged.verified_image
            )
            ptrace.detach(pid)
            if self._mediation.repeated is not None:
                self._mediation.repeated.note(tracee)
            self._performer.resume(tracee.scope, Ran())
            return
        try:
            ptrace.registers(pid)  # nothing is what it was where it was killed out of its stop
            self._performer.resume(tracee.scope, LoadedOther(problem, *image.shown(pid)))
        finally:
            os.kill(pid, signal.SIGKILL)

    def _on_other_stop(self, tracee: Tracee, wait_status: int) -> bool:
        """Whether it was let go."""
        if tracee.redirection is not None:
            done = tracee.redirection.on_stop(wait_status)
            if tracee.redirection.error:
                self._failed(tracee, tracee.redirection.error)
            return done
        # It returned from the exec. A group stop goes on after the detach, as its parent expects.
        stop = os.WSTOPSIG(wait_status)
        is_signal = not wait_status >> 16 and stop != ptrace.SYSCALL_STOP
        error = 0 if tracee.is_refused else ptrace.error_in(ptrace.registers(tracee.tid), EXECS)
        if error:
            self._failed(tracee, error)
        ptrace.detach(tracee.tid, stop if is_signal else 0)
        return True

    def _failed(self, tracee: Tracee, error: int) -> None:
        process = tracee.process
        process.comm, process.comm_is_current = procfs.comm(process.pid), True
        self._performer.resume(tracee.scope, KernelRefused(error))


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _interrupt(tracee: Tracee) -> None:
    try:
        ptrace.interrupt(tracee.tid)
    except Gone:
        pass  # its end will be reported


def _set_environment(pid: int, variables: Variables) -> str:
    if not variables:
        return ""
    try:
        add_to_new_image(pid, variables)
    except (OSError, KernelError, Unreadable) as failure:
        return f"its environment could not be set: {failure}"
    return ""
