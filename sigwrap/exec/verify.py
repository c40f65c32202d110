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
from collections.abc import Callable, Sequence

from sigwrap.bare import TYPE_CHECKING, signal
from sigwrap.calls import EXECS
from sigwrap.errors import KernelError
from sigwrap.exec.asked import Asked
from sigwrap.exec.executable import Executable
from sigwrap.exec.facts import ExecFacts
from sigwrap.kernel import procfs, ptrace
from sigwrap.kernel.file_state import place_of
from sigwrap.kernel.process import keep_from_core
from sigwrap.kernel.ptrace import Gone, NotTraceable
from sigwrap.kernel.restage import Redirection, Variables, add_to_new_image, objection_to_filters
from sigwrap.kernel.seccomp import Notification
from sigwrap.record.recordings import Expected, Recording
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
    from sigwrap.exec.handler import Execs
    from sigwrap.exec.traced import HeldTracer
    from sigwrap.session.mediation import Mediation
    from sigwrap.session.session import Session


class ExecHoldings:
    """The state and resources of one exec."""

    def __init__(self, execs: Execs) -> None:
        self.execs = execs
        self.asked: Asked | None = None
        self.executable: Executable | None = None
        self.facts: ExecFacts | None = None  # which the mediator judges
        self.tid = 0  # of the caller, from when sigwrap traces it
        self.held_tracer: HeldTracer | None = None  # if another process traces the caller
        self.judged: Executable | None = None  # to compare with the loaded image
        self.is_continued = False
        self.is_refused = False  # by sigwrap, so the log does not say that it goes on
        # For a replacement
        self.replacement: Executable | None = None
        self.name = ""
        self.path = b""
        self.descriptor = -1  # of the waiting program, in the caller's table
        self.replacement_argv: Sequence[bytes] = ()
        self.redirection: Redirection | None = None
        self.sets_environment = False  # the whole of it, at the exec stop
        self.variables: Variables = ()
        self.holds_secret = False
        # Takes the pid, and returns why the new image must not run, or "".
        self.at_exec_stop: Callable[[int], str] | None = None
        # For a stub's command
        self.expected: Expected | None = None
        self.recording: Recording | None = None

    def free_tracer(self) -> None:
        """Let the caller's tracer go on, if sigwrap holds it."""
        tracer, self.held_tracer = self.held_tracer, None
        if tracer is not None:
            self.execs.traced.let_go(tracer)

    def failed(self) -> None:
        """Release the caller when its failed call returns."""
        if self.tid:
            self.is_refused = True
            _interrupt(self.tid)

    def close(self) -> None:
        for each in (self.executable, self.replacement):
            if each is not None:
                each.close()
        self.free_tracer()
        if self.recording is not None and not self.is_continued:
            self.recording.drop("the command was refused")
        self.execs.turns.ended(self)


class Tracer:
    """Traces the callers of execs: the supervisor as a tracer."""

    def __init__(self, session: Session, mediation: Mediation) -> None:
        self._mediation = mediation
        self._performer = mediation.performer
        self._processes = session.processes
        self._pool = session.pool
        self._turns = session.exec_turns
        self._traced_for_signals = mediation.restarts.traced_until_s
        self._waits_through_signals = session.facts.launched.waits_through_signals
        self._by_tid: dict[int, Request] = {}
        self._by_pid: dict[int, Request] = {}

    def holds(self, tid: int) -> bool:
        return tid in self._by_tid

    @property
    def redirects(self) -> bool:
        """Return whether a call can come back as a new request."""
        return any(each.holdings.redirection is not None for each in self._by_tid.values())

    def take_back(self, notification: Notification) -> bool:
        """Return whether the notification is the restarted call of a traced thread."""
        request = self._by_tid.get(notification.tid)
        if request is None:
            return False
        redirection: Redirection | None = request.holdings.redirection
        if redirection is None:
            self._forget(request)  # another thread of its process has its id now
            return False
        self._performer.came_back(request, notification.id)
        is_intact = redirection.is_intact(notification)
        self._performer.resume(request, Restarted() if is_intact else Tampered())
        return True

    def hold(self, request: Request) -> None:
        """Seize the caller. Raises NotTraceable or Gone."""
        is_traced = self._traced_for_signals.pop(request.tid, None) is not None
        try:
            ptrace.seize(request.tid)
        except NotTraceable:
            if not is_traced or tracer_of(request.tid) != os.getpid():
                raise
        self.held_already(request)

    def held_already(self, request: Request) -> None:
        """Take over a caller that is seized already."""
        request.holdings.tid = request.tid
        self._by_tid[request.tid] = self._by_pid[request.process.pid] = request
        self._turns.take(request.process)

    def continue_call(self, request: Request, effect: VerifyThenContinue) -> None:
        # Without WAIT_KILLABLE_RECV, the interrupt would break off the notification itself. After
        # the answer it can come when the exec is over; then the exec stop cancels it.
        if self._waits_through_signals:
            _interrupt(request.tid)
        self._performer.continue_call(request, effect)
        if not self._waits_through_signals:
            _interrupt(request.tid)

    def restart(self, request: Request, effect: Replace) -> None:
        """Rewrite the call at a stop on its way out. It comes back as a new request."""
        _interrupt(request.tid)
        self._performer.restart(request, effect, ptrace.ERESTARTNOINTR)

    def _forget(self, request: Request) -> None:
        if self._by_tid.get(request.tid) is request:
            del self._by_tid[request.tid]
        is_its_turn = self._by_pid.get(request.process.pid) is request
        if is_its_turn:
            del self._by_pid[request.process.pid]
        self._performer.finish(request)
        if is_its_turn:
            self._turns.give_back(request.process)

    # What wait reports

    def on_stop(self, pid: int, wait_status: int) -> bool:
        """Return whether the stop is that of a caller."""
        if wait_status >> 16 == ptrace.EVENT_EXEC:
            self._on_exec(pid)
            return True
        request = self._by_tid.get(pid)
        if request is None or os.WIFCONTINUED(wait_status):
            return False
        try:
            done = self._on_other_stop(request, wait_status)
        except KernelError:  # it was killed at its stop
            done = True
        except Exception as bug:
            self._kill(request, bug)
            done = True
        if done:
            self._forget(request)
        return True

    def on_end(self, pid: int) -> None:
        request = self._by_tid.get(pid) or self._by_pid.get(pid)
        if request is not None:
            self._forget(request)

    def _on_exec(self, pid: int) -> None:
        """Verify the new image. The thread has its leader's id by now, even if it did not lead its
        process; sigwrap traces only one thread of each process."""
        self._traced_for_signals.pop(pid, None)  # the leader
        request = self._by_pid.get(pid)
        judged: Executable | None = None if request is None else request.holdings.judged
        if request is None or judged is None:  # sigwrap has not let this exec go on
            _kill(pid)
            if request is not None:
                self._forget(request)
        elif judged.is_read_slowly():
            self._compare_later(request, judged)
        else:
            self._decide(request, lambda: difference(pid, judged))

    def _compare_later(self, request: Request, judged: Executable) -> None:
        pid = request.process.pid

        def then(outcome: Outcome) -> None:
            if self._by_pid.get(pid) is not request:
                return  # it was killed meanwhile
            match outcome:
                case Done(value=problem):
                    self._decide(request, lambda: problem)
                case Late(why=why):
                    self._decide(request, lambda: f"cannot read the loaded image: {why}")
                case Raised(error=error):
                    self._kill(request, error)
                    self._forget(request)

        self._pool.run(lambda: difference(pid, judged), then)

    def _decide(self, request: Request, difference: Callable[[], str]) -> None:
        try:
            self._run_or_kill(request, difference())
        except (KernelError, ProcessLookupError):
            pass  # it was killed meanwhile
        except Exception as bug:
            self._kill(request, bug)
        self._forget(request)

    def _kill(self, request: Request, bug: Exception) -> None:
        """Kill the process after an error in sigwrap's own code."""
        _kill(request.process.pid)
        self._performer.broke(request, bug)

    def _run_or_kill(self, request: Request, problem: str) -> None:
        """Release the process, or kill it because of `problem`."""
        held: ExecHoldings = request.holdings
        pid, judged = request.process.pid, held.judged
        if not problem and held.holds_secret:
            # Another thread can have installed a filter since the exec was prepared.
            problem = objection_to_filters(pid) or keep_from_core(pid)
        if not problem and (held.variables or held.sets_environment):
            problem = _set_environment(pid, held.variables, is_whole=held.sets_environment)
        if not problem and held.at_exec_stop is not None:
            problem = held.at_exec_stop(pid)
        if not problem:
            image = None if judged is None else judged.verified_image
            self._processes.loaded(request.process, image)
            ptrace.detach(pid)
            if self._mediation.repeated is not None:
                self._mediation.repeated.note(request)
            self._performer.resume(request, Ran())
            return
        try:
            ptrace.registers(pid)  # fails if the process was killed at its stop
            self._performer.resume(request, LoadedOther(problem, *shown(pid)))
        finally:
            os.kill(pid, signal.SIGKILL)

    def _on_other_stop(self, request: Request, wait_status: int) -> bool:
        """Return whether the caller was released."""
        held: ExecHoldings = request.holdings
        if held.redirection is not None:
            done = held.redirection.on_stop(wait_status)
            if held.redirection.error:
                self._failed(request, held.redirection.error)
            return done
        # It has returned from the exec. A group stop lasts after the detach, as its parent expects.
        stop = os.WSTOPSIG(wait_status)
        is_signal = not wait_status >> 16 and stop != ptrace.SYSCALL_STOP
        error = 0 if held.is_refused else ptrace.error_in(ptrace.registers(request.tid), EXECS)
        if error:
            self._failed(request, error)
        ptrace.detach(request.tid, stop if is_signal else 0)
        return True

    def _failed(self, request: Request, error: int) -> None:
        process = request.process
        process.comm, process.comm_is_current = procfs.comm(process.pid), True
        self._performer.resume(request, KernelRefused(error))


def tracer_of(tid: int) -> int:
    """Return the thread id of the tracer, or 0."""
    return next(iter(procfs.numbers(tid, "TracerPid")), 0)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def _interrupt(tid: int) -> None:
    try:
        ptrace.interrupt(tid)
    except Gone:
        pass  # wait reports its end


def _set_environment(pid: int, variables: Variables, *, is_whole: bool) -> str:
    try:
        add_to_new_image(pid, variables, keeps_others=not is_whole)
    except (OSError, KernelError) as failure:
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
        folder = judged.where.folder
        if judged.readable and folder is not None and place_of(b"/proc/%d/cwd" % pid) != folder:
            return "its directory changed"
        if not (judged.content_holds() and judged.digests_hold()):
            return "the file's content changed"
        environment = judged.environment
        if judged.readable and environment and environment.differs(pid):
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
