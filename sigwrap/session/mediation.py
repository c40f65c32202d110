"""Pass each notification to the handler of its family, which starts a mediator for it.

Restarts is a part of its own: it repeats a call that a signal interrupts before that.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable

from sigwrap import calls
from sigwrap.bare import TYPE_CHECKING, signal
from sigwrap.calls import Family
from sigwrap.control.forks import Forks
from sigwrap.errors import KernelError
from sigwrap.exec.handler import Execs
from sigwrap.exec.repeated import RepeatedExecs, may_repeat
from sigwrap.files.audit import Files
from sigwrap.files.judge import Refusals
from sigwrap.files.refused import RefusedFiles
from sigwrap.kernel import procfs, ptrace, signals
from sigwrap.kernel.ptrace import Gone
from sigwrap.kernel.seccomp import Listener, ListenerBroken, Notification
from sigwrap.record.recordings import Recordings
from sigwrap.session import effects
from sigwrap.session.effects import refuse
from sigwrap.session.lineage import Process
from sigwrap.session.perform import Performer, Request
from sigwrap.signal.handler import Signals

if TYPE_CHECKING:
    from sigwrap.session.session import Session


class Mediation:
    def __init__(self, session: Session, listener: Listener) -> None:
        facts = session.facts
        self.listener = listener
        self._processes = session.processes
        self.performer = Performer(session, listener)
        self.recordings = Recordings(session, listener)
        self.restarts = Restarts(session, self.performer)
        self.refused = None
        if facts.sandbox.files is not None and facts.sandbox.files.rules is not None:
            home = os.fsdecode(facts.environment.given.get(b"HOME", b""))
            refusals = Refusals(facts.sandbox.files.rules, home)
            self.refused = RefusedFiles(session, refusals, self.performer)
        self.execs = Execs(session, self)
        self.forks = Forks(session, self)
        self._families: dict[Family, Callable[[Notification, Process, str], None]] = {
            Family.EXEC: self.execs.begin,
            Family.SIGNAL: Signals(session, self).begin,
            Family.FORK: self.forks.begin,
            Family.MOUNT: self.execs.begin_mount,
        }
        if session.plan.network is not None and session.mediates_network:
            self._families[Family.NETWORK] = session.plan.network(session, self).begin
        if session.engine.files.audits:
            self._families[Family.FILE] = Files(session, self).begin
        mediated = [call for call in calls.TABLE if call.family in self._families]
        self._begin = {
            arch: {number: (self._families[call.family], call.name) for number, call in row.items()}
            for arch, row in calls.by_number(mediated).items()
        }
        self.repeated = RepeatedExecs(session, self) if may_repeat(session) else None

    def receive(self) -> Notification | None:
        """Return a request that waits for an answer; None if there is none.

        Before that, the extension serves execs of files that have run before (exec/repeated.py).
        """
        if self.repeated is not None and self.repeated.may_serve():
            return self.repeated.serve()
        return self.listener.receive()

    def answer(self, notification: Notification) -> None:
        caller = None
        try:
            known = self._begin[notification.arch].get(notification.number)
            caller = self._processes.of_thread(notification.tid)
            if caller is None or known is None:
                self._refuse_unmediated(notification, caller)
            else:
                begin, syscall = known
                begin(notification, caller, syscall)
        except ListenerBroken:
            raise
        except Exception as bug:  # deny this request, and go on with the run
            process = caller or _unknown_process(notification.tid)
            error = f"{type(bug).__name__}: {bug}"
            payload = {"error": error, "comm": process.comm, "answered": False}
            self._run(notification, process, refuse("mediation_failed", payload))

    def _refuse_unmediated(self, notification: Notification, caller: Process | None) -> None:
        number = notification.number
        if caller is not None and notification.arch == calls.X86_64 and number & calls.X32_BIT:
            payload = {"syscall_number": number & ~calls.X32_BIT, "comm": caller.comm}
            self._run(notification, caller, refuse("abi_refused", payload, errno.ENOSYS))
            return
        reason = "sigwrap does not handle this call"
        if caller is None:  # it ended while it waited; if it still waits, it is not in the tree
            caller = _unknown_process(notification.tid)
            reason = "not in this session's process tree"
        unknown = {
            "syscall_number": number,
            "arch": f"{notification.arch:#x}",
            "arguments": [f"{argument:#x}" for argument in notification[6:]],
            "comm": caller.comm,
            "reason": reason,
        }
        self._run(notification, caller, refuse("call_refused", unknown))

    def on_stop(self, tid: int, wait_status: int) -> bool:
        """Return whether it is a tracing stop; job control handles a child's own stops."""
        return self.execs.on_stop(tid, wait_status) or self.restarts.on_stop(tid, wait_status)

    def on_end(self, tid: int) -> None:
        self.execs.on_end(tid)
        self.restarts.on_end(tid)

    def process_ended(self, process: Process, status: int | None) -> None:
        """Forget the process. `status`: its exit status; None after a signal, or if unknown."""
        if self.refused is not None:
            self.refused.ended(process, status)
        self.recordings.expected.pop(process, None)
        self.performer.process_ended(process)

    def close(self) -> None:
        if self.refused is not None:
            self.refused.close()
        self.recordings.close()
        self.performer.close()

    def _run(self, notification: Notification, caller: Process, steps: effects.Steps) -> None:
        self.performer.begin(Request(notification, caller, "", steps))


def _unknown_process(tid: int) -> Process:
    return Process(pid=tid, start_time=0, parent=None, ppid=0, depth=0, comm="")


# Repeat a call that a signal interrupts before the supervisor receives it.

_TRACED_FOR_S = 1.0  # after its last signal to a child
_LOOKS_EVERY_S = 0.02
_LEFT_TO_OTHERS_S = 0.1
_EXEC_TAKES_S = 0.005


class Restarts:
    def __init__(self, session: Session, performer: Performer) -> None:
        self._loop = session.loop
        self._performer = performer
        self._traced_until_s: dict[int, float] = {}  # traced by this class
        # Requests that wait until the process is released, and their replies.
        self._waiting: dict[int, list[tuple[Request, object]]] = {}
        self._left_to_others: set[int] = set()
        self._looks = False

    def expects_ends(self, pid: int) -> None:
        """Trace a process that is about to signal a child or to fork, and waits for the answer."""
        if pid not in self._traced_until_s:
            if pid in self._left_to_others:
                return
            if not signals.is_in(pid, signal.SIGCHLD, b"SigCgt"):  # as in most processes
                return
            if procfs.numbers(pid, "Threads") != [1] or not _seize(pid):
                return
            self._look_later()
        self._traced_until_s[pid] = time.monotonic() + _TRACED_FOR_S

    def hand_over(self, pid: int) -> bool:
        """Return whether the process was traced. From now on it is traced for its exec."""
        is_traced = pid in self._traced_until_s
        self._forget(pid, others_wait_s=_EXEC_TAKES_S)
        return is_traced

    def let_go_soon(self, pid: int, request: Request, reply: object) -> bool:
        """Return whether this class traced the process: if so, the request waits for its release.

        A process that waits for an answer stops on its way out.
        """
        if pid not in self._traced_until_s:
            return False
        self._traced_until_s[pid] = 0.0
        self._waiting.setdefault(pid, []).append((request, reply))
        _interrupt(pid)
        return True

    def on_stop(self, pid: int, wait_status: int) -> bool:
        """Return whether the stopped process is traced by this class."""
        if pid not in self._traced_until_s or os.WIFCONTINUED(wait_status):
            return False
        try:
            goes_on_traced = self._send_on(pid, wait_status)
        except KernelError:
            goes_on_traced = False  # it was killed at its stop
        if not goes_on_traced:
            self._forget(pid)
        return True

    def _send_on(self, pid: int, wait_status: int) -> bool:
        stop = os.WSTOPSIG(wait_status)
        number = 0 if wait_status >> 16 or stop == ptrace.SYSCALL_STOP else stop
        ptrace.make_again(pid, wait_status)
        if number and time.monotonic() < self._traced_until_s[pid]:
            ptrace.resume(pid, number)
            return True
        ptrace.detach(pid, number)
        return False

    def on_end(self, pid: int) -> None:
        self._forget(pid)

    def _forget(self, pid: int, *, others_wait_s: float = 0.0) -> None:
        self._traced_until_s.pop(pid, None)
        waiting = self._waiting.pop(pid, None)
        if waiting is None:
            return
        now_s = time.monotonic()
        for request, reply in waiting:
            self._performer.wake_at(now_s + others_wait_s, request, reply)
        self._left_to_others.add(pid)
        self._loop.call_in(_LEFT_TO_OTHERS_S, self._left_to_others.discard, pid)

    def _look_later(self) -> None:
        if not self._looks:
            self._looks = True
            self._loop.call_in(_LOOKS_EVERY_S, self._look)

    def _look(self) -> None:
        now_s = time.monotonic()
        for pid, until_s in self._traced_until_s.items():
            if now_s >= until_s or ptrace.would_begin_anew(pid):
                _interrupt(pid)
        self._looks = False
        if self._traced_until_s:
            self._look_later()


def _interrupt(pid: int) -> None:
    try:
        ptrace.interrupt(pid)
    except Gone:
        pass  # wait reports its end


def _seize(pid: int) -> bool:
    """Return False if the process is traced, unreadable, or was killed."""
    try:
        ptrace.seize(pid, ptrace.TO_ITS_EXEC_OR_END)
    except KernelError:
        return False
    return True
