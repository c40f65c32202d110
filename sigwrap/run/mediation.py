"""Pass each notification to the mediator of its family."""

from __future__ import annotations

import os
from collections.abc import Callable

from sigwrap import calls
from sigwrap.bare import TYPE_CHECKING
from sigwrap.calls import Family
from sigwrap.linux.seccomp import Listener, ListenerBroken, Notification
from sigwrap.mediate import effects
from sigwrap.mediate.files import Refusals
from sigwrap.mediate.lineage import Process
from sigwrap.mediate.refusal import UnknownCall, refuse_failed, refuse_unknown, refuse_x32
from sigwrap.run.execs.execs import Execs
from sigwrap.run.execs.repeated import RepeatedExecs
from sigwrap.run.files import Files, RefusedFiles
from sigwrap.run.forks import Forks
from sigwrap.run.perform import Performer, Scope
from sigwrap.run.recording.recordings import Recordings
from sigwrap.run.restarts import Restarts
from sigwrap.run.signals import Signals
from sigwrap.run.walls import Walls
from sigwrap.start.command import HostEnvironment

if TYPE_CHECKING:  # the session imports it if it needs it
    from sigwrap.run.session import Session


class Mediation:
    def __init__(self, session: Session, listener: Listener) -> None:
        facts = session.facts
        self.listener = listener
        self._processes = session.processes
        self.performer = Performer(session, listener)
        self.recordings = Recordings(session, listener)
        self.restarts = Restarts(session, self.performer)
        refusals = _refusals(facts.walls, facts.environment)
        self.refused = None
        if refusals is not None:
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
        self.repeated = None
        if self.execs.may_repeat:
            self.repeated = RepeatedExecs(session, self, self.execs)

    def receive(self) -> Notification | None:
        """Return a request that waits for an answer; None if there is none."""
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
            self._run(notification, process, refuse_failed(error, process.comm))

    def _refuse_unmediated(self, notification: Notification, caller: Process | None) -> None:
        if caller is None:
            # It ended while it waited. If it still waits, it is not in the tree.
            self._refuse(notification, caller, "not in this session's process tree")
        elif notification.arch == calls.X86_64 and notification.number & calls.X32_BIT:
            self._run(notification, caller, refuse_x32(notification.number, caller.comm))
        else:
            self._refuse(notification, caller, "sigwrap does not handle this call")

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
        self.recordings.forget(process)
        self.performer.process_ended(process)

    def close(self) -> None:
        if self.refused is not None:
            self.refused.close()
        self.recordings.close()
        self.performer.close()

    def _refuse(self, notification: Notification, caller: Process | None, reason: str) -> None:
        caller = caller or _unknown_process(notification.tid)
        unknown = UnknownCall(
            number=notification.number,
            arch=notification.arch,
            arguments=notification[6:],
            comm=caller.comm,
            reason=reason,
        )
        self._run(notification, caller, refuse_unknown(unknown))

    def _run(self, notification: Notification, caller: Process, steps: effects.Steps) -> None:
        self.performer.begin(Scope(notification, caller, "", steps))


def _unknown_process(tid: int) -> Process:
    return Process(pid=tid, start_time=0, parent=None, ppid=0, depth=0, comm="")


def _refusals(walls: Walls, environment: HostEnvironment) -> Refusals | None:
    """Return the refusals to infer, if the policy denies files."""
    rules = None if walls.files is None else walls.files.rules
    home = os.fsdecode(environment.given.get(b"HOME", b""))
    return None if rules is None else Refusals(rules, home)
