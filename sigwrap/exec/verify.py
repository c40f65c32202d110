"""Trace every exec that goes on until it has succeeded or failed, to verify what was loaded.

Sigwrap seizes the caller while it waits in its notification, asks it to stop, and lets it go on. If
the exec succeeds, the thread stops before the first instruction of the new image. There sigwrap
compares the image, and releases or kills the process. If the kernel refuses the exec, the requested
stop comes as the thread returns, and the errno stays as it is. One of the two always comes.
(PTRACE_SYSCALL would report a refusal as well, but it needs a stop first, which a thread inside a
notification cannot have.)

A process makes one exec at a time. PTRACE_SEIZE takes a mutex that an exec holds while it waits for
the other threads of its process to go. If sigwrap traces such a thread, it goes only when sigwrap
reaps it. So seizing a second thread could block the supervisor forever, and the requests of the
other threads wait.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from sigwrap.bare import TYPE_CHECKING, signal
from sigwrap.calls import EXECS
from sigwrap.errors import KernelError
from sigwrap.exec.executable import Executable
from sigwrap.kernel import procfs, ptrace
from sigwrap.kernel.file_state import place_of
from sigwrap.kernel.memory import Unreadable
from sigwrap.kernel.process import keep_from_core
from sigwrap.kernel.ptrace import Gone, NotTraceable
from sigwrap.kernel.restage import Redirection, Variables, add_to_new_image, objection_to_filters
from sigwrap.kernel.seccomp import Notification
from sigwrap.session.effects import (
    KernelRefused,
    LoadedOther,
    Ran,
    Replace,
    Restarted,
    Tampered,
    VerifyThenContinue,
)
from sigwrap.session.loop import Done, Late, Outcome, Raised
from sigwrap.session.perform import Request

if TYPE_CHECKING:
    from sigwrap.exec.handler import ExecHoldings
    from sigwrap.session.mediation import Mediation
    from sigwrap.session.session import Session


class Tracee:
    """A thread that the supervisor traces, from its notification until its exec is over."""

    __slots__ = ("is_refused", "judged", "process", "redirection", "request", "tid")

    def __init__(self, request: Request) -> None:
        self.tid = request.tid
        self.process = request.process
        self.request = request
        self.judged: Executable | None = None
        self.redirection: Redirection | None = None
        self.is_refused = False  # by sigwrap, so the log does not say that it goes on


class Tracer:
    """Traces the callers of execs: the supervisor as a tracer."""

    def __init__(self, session: Session, mediation: Mediation) -> None:
        self._mediation = mediation
        self._performer = mediation.performer
        self._processes = session.processes
        self._pool = session.pool
        self._turns = session.exec_turns
        self._restarts = mediation.restarts
        self._waits_through_signals = session.facts.launched.waits_through_signals
        self._by_tid: dict[int, Tracee] = {}
        self._by_pid: dict[int, Tracee] = {}

    def holds(self, tid: int) -> bool:
        return tid in self._by_tid

    @property
    def redirects(self) -> bool:
        """Return whether a call can come back as a new request."""
        return any(tracee.redirection is not None for tracee in self._by_tid.values())

    def take_back(self, notification: Notification) -> bool:
        """Return whether the notification is the restarted call of a tracee."""
        tracee = self._by_tid.get(notification.tid)
        if tracee is None:
            return False
        if tracee.redirection is None:
            self._forget(tracee)  # another thread of its process has its id now
            return False
        self._performer.came_back(tracee.request, notification.id)
        is_intact = tracee.redirection.is_intact(notification)
        self._performer.resume(tracee.request, Restarted() if is_intact else Tampered())
        return True

    def hold(self, request: Request) -> Tracee:
        """Seize the caller. Raises NotTraceable or Gone."""
        is_ours = request.tid == request.process.pid and self._restarts.hand_over(request.tid)
        try:
            ptrace.seize(request.tid)
        except NotTraceable:
            if not is_ours or tracer_of(request.tid) != os.getpid():
                raise
        return self.held_already(request)

    def held_already(self, request: Request) -> Tracee:
        """Take over a caller that is seized already."""
        tracee = Tracee(request)
        self._by_tid[request.tid] = tracee
        self._by_pid[request.process.pid] = tracee
        self._turns.take(request.process)
        return tracee

    def continue_call(self, tracee: Tracee, effect: VerifyThenContinue) -> None:
        # Without WAIT_KILLABLE_RECV, the interrupt would break off the notification itself. After
        # the answer it can come when the exec is over; then the exec stop cancels it.
        if self._waits_through_signals:
            _interrupt(tracee)
        self._performer.continue_call(tracee.request, effect)
        if not self._waits_through_signals:
            _interrupt(tracee)

    def refused(self, tracee: Tracee) -> None:
        """Release the tracee when its failed call returns."""
        tracee.is_refused = True
        _interrupt(tracee)

    def restart(self, tracee: Tracee, redirection: Redirection, effect: Replace) -> None:
        """Rewrite the call at a stop on its way out. It comes back as a new request."""
        tracee.redirection = redirection
        _interrupt(tracee)
        self._performer.restart(tracee.request, effect, ptrace.ERESTARTNOINTR)

    def _forget(self, tracee: Tracee) -> None:
        if self._by_tid.get(tracee.tid) is tracee:
            del self._by_tid[tracee.tid]
        is_its_turn = self._by_pid.get(tracee.process.pid) is tracee
        if is_its_turn:
            del self._by_pid[tracee.process.pid]
        self._performer.finish(tracee.request)
        if is_its_turn:
            self._turns.give_back(tracee.process)

    # What wait reports

    def on_stop(self, pid: int, wait_status: int) -> bool:
        """Return whether the stop is that of a tracee."""
        if wait_status >> 16 == ptrace.EVENT_EXEC:
            self._on_exec(pid)
            return True
        tracee = self._by_tid.get(pid)
        if tracee is None or os.WIFCONTINUED(wait_status):
            return False
        try:
            done = self._on_other_stop(tracee, wait_status)
        except KernelError:  # it was killed at its stop
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
        """Verify the new image. The thread has its leader's id by now, even if it did not lead its
        process; sigwrap traces only one thread of each process."""
        self._restarts.on_end(pid)  # the leader
        tracee = self._by_pid.get(pid)
        if tracee is None or tracee.judged is None:  # sigwrap has not let this exec go on
            _kill(pid)
            if tracee is not None:
                self._forget(tracee)
        elif tracee.judged.is_read_slowly():
            self._compare_later(pid, tracee, tracee.judged)
        else:
            judged = tracee.judged
            self._decide(pid, tracee, lambda: difference(pid, judged))

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

        self._pool.run(lambda: difference(pid, judged), then)

    def _decide(self, pid: int, tracee: Tracee, difference: Callable[[], str]) -> None:
        try:
            self._run_or_kill(pid, tracee, difference())
        except (KernelError, ProcessLookupError):
            pass  # it was killed meanwhile
        except Exception as bug:
            self._kill(pid, tracee, bug)
        self._forget(tracee)

    def _kill(self, pid: int, tracee: Tracee, bug: Exception) -> None:
        """Kill the process after an error in sigwrap's own code."""
        _kill(pid)
        self._performer.broke(tracee.request, bug)

    def _run_or_kill(self, pid: int, tracee: Tracee, problem: str) -> None:
        """Release the process, or kill it because of `problem`."""
        held: ExecHoldings = tracee.request.holdings
        if not problem and held.holds_secret:
            # Another thread can have installed a filter since the exec was prepared.
            problem = objection_to_filters(pid) or keep_from_core(pid)
        if not problem and (held.variables or held.sets_environment):
            problem = _set_environment(pid, held.variables, is_whole=held.sets_environment)
        if not problem and held.at_exec_stop is not None:
            problem = held.at_exec_stop(pid)
        if not problem:
            judged = tracee.judged
            self._processes.loaded(
                tracee.process, None if judged is None else judged.verified_image
            )
            ptrace.detach(pid)
            if self._mediation.repeated is not None:
                self._mediation.repeated.note(tracee)
            self._performer.resume(tracee.request, Ran())
            return
        try:
            ptrace.registers(pid)  # fails if the process was killed at its stop
            self._performer.resume(tracee.request, LoadedOther(problem, *shown(pid)))
        finally:
            os.kill(pid, signal.SIGKILL)

    def _on_other_stop(self, tracee: Tracee, wait_status: int) -> bool:
        """Return whether the tracee was released."""
        if tracee.redirection is not None:
            done = tracee.redirection.on_stop(wait_status)
            if tracee.redirection.error:
                self._failed(tracee, tracee.redirection.error)
            return done
        # It has returned from the exec. A group stop lasts after the detach, as its parent expects.
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
        self._performer.resume(tracee.request, KernelRefused(error))


def tracer_of(tid: int) -> int:
    """Return the thread id of the tracer, or 0."""
    return next(iter(procfs.numbers(tid, "TracerPid")), 0)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _interrupt(tracee: Tracee) -> None:
    try:
        ptrace.interrupt(tracee.tid)
    except Gone:
        pass  # wait reports its end


def _set_environment(pid: int, variables: Variables, *, is_whole: bool) -> str:
    try:
        add_to_new_image(pid, variables, keeps_others=not is_whole)
    except (OSError, KernelError, Unreadable) as failure:
        return f"its environment could not be set: {failure}"
    return ""


# Compare what the kernel loaded with what was judged: before the new image runs its first
# instruction.

_SHOWN_BYTES = 64 * 1024


def difference(pid: int, judged: Executable) -> str:
    """Return what differs, or ""."""
    try:
        if not _is_loaded(pid, judged):
            return "the kernel loaded another file"
        if not _matches(pid, judged.command_line, judged.cut):
            return "its arguments changed"
        if not judged.loader_holds(pid):
            return "the kernel loaded another interpreter"
        if judged.readable and place_of(b"/proc/%d/root" % pid) != judged.root:
            return "its root directory changed, and it loads libraries from there"
        if judged.readable and not judged.where.holds(pid):
            return "its directory changed"
        if not (judged.content_holds() and judged.digests_hold()):
            return "the file's content changed"
        if judged.readable and judged.environment and judged.environment.differs(pid):
            return "its environment changed"
    except OSError as unreadable:
        return f"cannot read the loaded image: {unreadable.strerror}"
    return ""


def shown(pid: int) -> tuple[str, tuple[str, ...]]:
    """Return the loaded file and its arguments, as far as they are readable."""
    path, argv = "", list[bytes]()
    try:
        argv = _read(pid, _SHOWN_BYTES).split(b"\0")[:-1]
        path = procfs.link(f"/proc/{pid}/exe")
    except OSError:
        pass
    return path, tuple(map(os.fsdecode, argv))


def _is_loaded(pid: int, judged: Executable) -> bool:
    """Return whether the judged file is loaded, from the same mount.

    On another mount, other libraries may lie beside the file. If sigwrap may not read the program,
    it can only check that the loaded one is unreadable as well.
    """
    try:
        loaded = judged.place_of_image(pid)
    except PermissionError:
        if judged.readable:
            raise
        return True
    return loaded == judged.image


def _matches(pid: int, wanted: bytes, cut: bool) -> bool:
    found = _read(pid, len(wanted) + 1)
    return found.startswith(wanted) if cut else found == wanted


def _read(pid: int, size: int) -> bytes:
    """Read the arguments in one call, which returns `size` bytes, or all."""
    fd = procfs.open_file(f"/proc/{pid}/cmdline")
    try:
        return os.read(fd, size)
    finally:
        os.close(fd)
