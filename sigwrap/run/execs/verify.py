"""What was judged is what runs: every exec that goes on is compared with the image it loaded.

The thread is seized while it waits in its notification and asked to stop, then let go on. Either
the exec succeeds, and the thread stops before the first instruction of the new image, where it is
compared and released or killed; or the kernel refuses it, and the stop that was asked for comes as
the thread returns, with the errno untouched. One of the two always comes, so nothing is waited for
and no exec is lost track of. (PTRACE_SYSCALL would tell of a refusal as well, but needs a stop
first, which a thread inside a notification can't have.)

One exec of a process at a time. PTRACE_SEIZE takes the mutex that an exec holds while it waits for
the process's other threads to go, and such a thread, if we traced it, goes only when we reap it: to
seize a second thread could block us for good. So the others' requests are put off. Behind an exec
that could not be held they are not verified either: nothing tells when that one is over.
"""

from __future__ import annotations

import errno
import os
import signal
from collections import deque
from collections.abc import Callable

from sigwrap.errors import KernelError
from sigwrap.linux import procfs, ptrace
from sigwrap.linux.execs.restage import Redirection
from sigwrap.linux.execs.target import Target
from sigwrap.linux.memory import Unreadable
from sigwrap.linux.ptrace import Gone, NotTraceable
from sigwrap.linux.seccomp import Listener, Request
from sigwrap.linux.syscalls import EXECS
from sigwrap.mediate.lineage import Process
from sigwrap.mediate.masking import masked
from sigwrap.run.execs.environment import Variables, add_to_new_image
from sigwrap.run.recorder import Recorder

_SHOWN_BYTES = 64 * 1024
_UNHELD_KEPT = 1000


class Held:
    """A thread that we trace, from its notification until its exec has succeeded or failed."""

    __slots__ = (
        "at_exec_stop",
        "process",
        "redirection",
        "refused",
        "rule",
        "target",
        "tid",
        "variables",
    )

    def __init__(
        self,
        tid: int,
        process: Process,
        target: Target,
        rule: str,
        redirection: Redirection | None = None,
        variables: Variables = (),
        at_exec_stop: Callable[[int], str] | None = None,
    ) -> None:
        """`at_exec_stop` gets the pid, and says why the new image must not run, if so."""
        self.tid = tid
        self.process = process
        self.target = target
        self.rule = rule
        self.redirection = redirection
        self.variables = variables
        self.at_exec_stop = at_exec_stop
        self.refused = False  # by us: nobody was told that it goes on


class Verifier:
    def __init__(
        self,
        listener: Listener,
        recorder: Recorder,
        ask_again: Callable[[Request, Process], None],
        loaded: Callable[[Process], None],
        *,
        waits_through_signals: bool,
    ) -> None:
        """`ask_again` gets a request that was put off, if its caller still waits; `loaded` a
        process whose exec has succeeded, before it runs."""
        self._listener = listener
        self._recorder = recorder
        self._ask_again = ask_again
        self._loaded = loaded
        self._waits_through_signals = waits_through_signals
        self._by_tid: dict[int, Held] = {}
        self._by_pid: dict[int, Held] = {}
        self._put_off: dict[int, deque[Request]] = {}
        self._unheld: dict[int, tuple[Process, int]] = {}  # pid -> whose thread went on unverified

    def held(self, tid: int) -> Held | None:
        return self._by_tid.get(tid)

    def holds(self, tid: int) -> bool:
        return tid in self._by_tid

    def put_off(self, request: Request, process: Process) -> bool:
        """Whether another thread's exec comes first."""
        if process.pid not in self._by_pid:
            return False
        self._put_off.setdefault(process.pid, deque()).append(request)
        return True

    def hold(self, held: Held) -> None:
        """Owns the target from here on. Raises NotTraceable or Gone, and then it doesn't."""
        if self._unheld and self._is_behind_unheld(held):
            raise NotTraceable("another thread's exec may not be over", errno.EBUSY)
        ptrace.seize(held.tid)
        self._by_tid[held.tid] = held
        self._by_pid[held.process.pid] = held

    def note_unheld(self, process: Process, tid: int) -> None:
        """A thread's exec goes on without being held."""
        if len(self._unheld) >= _UNHELD_KEPT:
            alive = {pid: who for pid, who in self._unheld.items() if _is_task(pid, who[1])}
            self._unheld = alive
        self._unheld[process.pid] = (process, tid)

    def _is_behind_unheld(self, held: Held) -> bool:
        process, tid = self._unheld.get(held.process.pid, (None, 0))
        if process is None:
            return False
        if process is held.process and tid != held.tid and _is_task(process.pid, tid):
            return True
        del self._unheld[held.process.pid]
        return False

    def go_on(self, held: Held, request: Request) -> None:
        # Without WAIT_KILLABLE_RECV the interrupt would break off the notification itself. After
        # the answer it may come when the exec is already over: the exec stop calls it off.
        if self._waits_through_signals:
            self._interrupt(held)
            self._listener.resume(request.id)
        else:
            self._listener.resume(request.id)
            self._interrupt(held)

    def refuse(self, held: Held, request: Request, error: int) -> None:
        """Its exec fails; it is let go as it returns."""
        held.refused = True
        self._listener.fail(request.id, error)
        self._interrupt(held)

    def restart(self, held: Held, request: Request) -> None:
        """The call stops on its way out, is rewritten there, and comes back as a new request."""
        self._interrupt(held)
        self._listener.fail(request.id, ptrace.ERESTARTNOINTR)

    def forget(self, held: Held) -> None:
        if self._by_tid.get(held.tid) is held:
            del self._by_tid[held.tid]
        if self._by_pid.get(held.process.pid) is held:
            del self._by_pid[held.process.pid]
        held.target.close()
        pid = held.process.pid
        waiting = self._put_off.get(pid)
        while waiting and pid not in self._by_pid:
            request = waiting.popleft()
            if self._listener.is_waiting(request.id):
                self._ask_again(request, held.process)
        if not waiting:
            self._put_off.pop(pid, None)

    # What wait reports

    def on_stop(self, pid: int, wait_status: int) -> bool:
        """Whether the stop was one of ours; a child's own stop is for others to see to."""
        if wait_status >> 16 == ptrace.EVENT_EXEC:
            self._on_exec(pid)
            return True
        held = self._by_tid.get(pid)
        if held is None or os.WIFCONTINUED(wait_status):
            return False
        try:
            done = self._on_other_stop(held, wait_status)
        except KernelError:  # it was killed out of its stop
            done = True
        if done:
            self.forget(held)
        return True

    def on_end(self, pid: int) -> None:
        held = self._by_tid.get(pid) or self._by_pid.get(pid)
        if held is not None:
            self.forget(held)

    def _on_exec(self, pid: int) -> None:
        """By now a thread that didn't lead its process has taken the leader's id; of each process
        one thread is held, so this is it."""
        held = self._by_pid.get(pid)
        try:
            if held is None:  # nothing that we let go on
                os.kill(pid, signal.SIGKILL)
                return
            problem = self._difference(pid, held.target) or _set_environment(pid, held.variables)
            if not problem and held.at_exec_stop is not None:
                problem = held.at_exec_stop(pid)
            if problem:
                self._kill(pid, held, problem)
            else:
                self._loaded(held.process)
                ptrace.detach(pid)
        except (KernelError, ProcessLookupError):
            pass  # it was killed meanwhile
        if held is not None:
            self.forget(held)

    def _on_other_stop(self, held: Held, wait_status: int) -> bool:
        """Whether it was let go."""
        if held.redirection is not None:
            done = held.redirection.on_stop(wait_status)
            if held.redirection.error:
                self._note_failure(held, held.redirection.error)
            return done
        # It returned from the exec. A group stop goes on after the detach, as its parent expects.
        is_event = wait_status >> 16
        error = 0 if held.refused else ptrace.error_in(ptrace.registers(held.tid), EXECS)
        if error:
            self._note_failure(held, error)
        ptrace.detach(held.tid, 0 if is_event else os.WSTOPSIG(wait_status))
        return True

    def _note_failure(self, held: Held, error: int) -> None:
        """The log has it as let through already."""
        process = held.process
        process.comm, process.comm_is_current = procfs.comm(process.pid), True
        payload = {
            "path": held.target.programs[0].path,
            "error": errno.errorcode.get(error, str(error)),
            "rule_name": held.rule,
        }
        self._recorder.record("exec_failed", process.pid, payload)

    def _interrupt(self, held: Held) -> None:
        try:
            ptrace.interrupt(held.tid)
        except Gone:
            pass  # its end will be reported

    # The comparison

    def _difference(self, pid: int, target: Target) -> str:
        try:
            if not _is_loaded(pid, target):
                return "another file was loaded"
            if not _matches(pid, target.command_line, target.cut):
                return "its arguments are others"
        except OSError as unreadable:
            return f"the loaded image can't be read: {unreadable.strerror}"
        if target.digests and not target.digests_hold():
            return "the file's content changed"
        return ""

    def _kill(self, pid: int, held: Held, problem: str) -> None:
        loaded_path, arguments = "", list[bytes]()
        try:
            arguments = _read(pid, _SHOWN_BYTES).split(b"\0")[:-1]
            loaded_path = os.readlink(f"/proc/{pid}/exe")
        except OSError:
            pass  # what is unknown stays empty
        payload = {
            "path": held.target.programs[0].path,
            "reason": problem,
            "loaded_path": loaded_path,
            "loaded_argv": masked([os.fsdecode(each) for each in arguments]),
            "rule_name": held.rule,
        }
        self._recorder.record("exec_verification_failed", pid, payload)
        os.kill(pid, signal.SIGKILL)


def _is_loaded(pid: int, target: Target) -> bool:
    """Of a program that we may not read it is only known that what runs is such a one too."""
    try:
        loaded = os.stat(f"/proc/{pid}/exe")
    except PermissionError:
        if target.readable:
            raise
        return True
    return (loaded.st_dev, loaded.st_ino) == target.image


def _is_task(pid: int, tid: int) -> bool:
    return os.path.exists(f"/proc/{pid}/task/{tid}")


def _set_environment(pid: int, variables: Variables) -> str:
    if not variables:
        return ""
    try:
        add_to_new_image(pid, variables)
    except (OSError, KernelError, Unreadable) as failure:
        return f"its environment could not be set: {failure}"
    return ""


def _matches(pid: int, wanted: bytes, cut: bool) -> bool:
    found = _read(pid, len(wanted) + 1)
    return found.startswith(wanted) if cut else found == wanted


def _read(pid: int, size: int) -> bytes:
    fd = os.open(f"/proc/{pid}/cmdline", os.O_RDONLY | os.O_CLOEXEC)
    try:
        data = os.read(fd, size)
        while len(data) < size and (more := os.read(fd, size - len(data))):
            data += more
        return data
    finally:
        os.close(fd)
