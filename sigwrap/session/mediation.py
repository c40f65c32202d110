"""Pass each notification to the handler of its family, which starts a mediator for it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

from sigwrap import calls
from sigwrap.bare import TYPE_CHECKING
from sigwrap.calls import Family
from sigwrap.control.forks import Forks
from sigwrap.exec.handler import Execs
from sigwrap.exec.repeated import RepeatedExecs, may_repeat
from sigwrap.files.audit import Files
from sigwrap.files.judge import Refusals
from sigwrap.files.refused import RefusedFiles
from sigwrap.kernel.seccomp import Listener, ListenerBroken, Notification
from sigwrap.record.recordings import Recordings
from sigwrap.session import effects
from sigwrap.session.effects import refuse
from sigwrap.session.lineage import Process
from sigwrap.session.perform import Performer, Request
from sigwrap.signal.handler import Signals
from sigwrap.signal.restarts import Restarts

if TYPE_CHECKING:
    from sigwrap.session.session import Session


class Mediation:
    def __init__(self, session: Session, listener: Listener) -> None:
        facts = session.facts
        self.listener = listener
        self._processes = session.processes
        self.performer = Performer(session, listener)
        self.recordings = Recordings(session, listener)
        self.restarts = Restarts(session)
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
        self.restarts.traced_until_s.pop(tid, None)

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
