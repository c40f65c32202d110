"""Pass each notification to the handler of its family, which starts a mediator for it.

Every family shares one handler: Asking, for approval requests and for lines to a caller.
"""

from __future__ import annotations

import _thread
import errno
import os
from collections.abc import Callable

from sigwrap import calls
from sigwrap.approve.requests import DENIED, TO_AN_AGENT, Answer
from sigwrap.bare import TYPE_CHECKING
from sigwrap.calls import Family
from sigwrap.control.forks import Forks
from sigwrap.exec.handler import Execs
from sigwrap.exec.repeated import RepeatedExecs, may_repeat
from sigwrap.files.handler import Files, RefusedFiles
from sigwrap.files.judge import Refusals
from sigwrap.kernel import signals, terminals
from sigwrap.kernel.seccomp import Listener, ListenerBroken, Notification
from sigwrap.record.recordings import Recordings
from sigwrap.session import effects
from sigwrap.session.effects import Ask, Tell, WouldWait, refuse
from sigwrap.session.lineage import Process
from sigwrap.session.loop import Lane, Outcome
from sigwrap.session.perform import PAUSED, CallerGone, Performer, Request
from sigwrap.signal.handler import Signals
from sigwrap.signal.restarts import Restarts
from sigwrap.text import printable

if TYPE_CHECKING:
    from sigwrap.session.session import Session

_LOOK_AFTER_CALLERS_S = 1.0
_WRITTEN_WITHIN_S = 0.005
_LINE_DEADLINE_S = 1.0


class Mediation:
    def __init__(self, session: Session, listener: Listener) -> None:
        facts = session.facts
        self.listener = listener
        self._processes = session.processes
        self.performer = Performer(session, listener)
        self.asking = Asking(session, self.performer)
        self.recordings = Recordings(session, listener)
        self.restarts = Restarts(session)
        self.refused = None
        if facts.sandbox.files is not None and facts.sandbox.files.rules is not None:
            home = os.fsdecode(facts.environment.given.get(b"HOME", b""))
            refusals = Refusals(facts.sandbox.files.rules, home)
            self.refused = RefusedFiles(session, refusals, self.asking)
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
        notification, repeated = self.listener.receive(), self.repeated
        if notification is None or repeated is None or notification.number not in calls.EXECS:
            return notification
        return repeated.serve(self.listener.received) if repeated.may_serve() else notification

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
        self.asking.process_ended(process)

    def close(self) -> None:
        if self.refused is not None:
            self.refused.close()
        self.recordings.close()
        self.performer.close()

    def _run(self, notification: Notification, caller: Process, steps: effects.Steps) -> None:
        self.performer.begin(Request(notification, caller, "", steps))


def _unknown_process(tid: int) -> Process:
    return Process(pid=tid, start_time=0, parent=None, ppid=0, depth=0, comm="")


class Asking:
    def __init__(self, session: Session, performer: Performer) -> None:
        self._approvals = session.approvals
        self._loop = session.loop
        self._pool = session.pool
        self._performer = performer
        self._waiting: dict[Request, str] = {}  # -> the id of the approval that it waits for
        performer.offer({Ask: self._ask, WouldWait: self._would_wait, Tell: self._tell})
        terminals.prepare_to_write()

    def process_ended(self, process: Process) -> None:
        self._approvals.process_ended(process.pid)
        for request in [request for request in self._waiting if request.process is process]:
            self._approvals.withdraw(self._waiting[request])

    def _would_wait(self, _request: Request, effect: WouldWait) -> bool:
        return self._approvals.would_wait(effect.request)

    def _ask(self, request: Request, effect: Ask) -> object:
        self._performer.check(request)
        at_once: list[Answer] = []

        def answered(answer: Answer) -> None:
            if request not in self._waiting:
                at_once.append(answer)
                return
            del self._waiting[request]
            if answer.reason == "withdrawn":
                self._performer.finish(request)
            else:
                self._performer.wake(request, answer)

        approval_id = self._approvals.ask(effect.request, answered)
        if at_once:
            if at_once[0].reason == "withdrawn":
                raise CallerGone
            return at_once[0]
        if not self._waiting:
            self._loop.call_in(_LOOK_AFTER_CALLERS_S, self._look_after_callers)
        self._waiting[request] = approval_id
        if effect.notice:
            how = self._approvals.how_to_answer(approval_id)
            text = f"sigwrap: request {approval_id}: {effect.notice}; {how}"
            line = terminals.Line(
                request.process.pid,
                printable(text),
                spares_screens=True,
                spares_ours=self._approvals.can_show,
            )
            self.write(line, lambda _outcome: None)
        return PAUSED

    def _look_after_callers(self) -> None:
        """Withdraw the requests of threads that have ended, and let the others end that have to: a
        signal that dumps core, such as SIGQUIT, does not end the wait of a call."""
        for request, approval_id in tuple(self._waiting.items()):
            dumps_core = signals.is_about_to_dump_core(request.tid)
            is_waiting = self._performer.is_waiting(request)
            if is_waiting and dumps_core:
                self._performer.interrupt(request)
            if dumps_core or not is_waiting:
                self._approvals.withdraw(approval_id)
        if self._waiting:
            self._loop.call_in(_LOOK_AFTER_CALLERS_S, self._look_after_callers)

    def _tell(self, request: Request, effect: Tell) -> object:
        """Write the line before the answer, so that it comes before the caller's own."""
        self._performer.check(request)
        advice = TO_AN_AGENT if effect.text.startswith(DENIED) else ""
        line = terminals.Line(request.process.pid, printable(effect.text), off_terminals=advice)
        written = self.write(line, lambda _outcome: self._performer.resume(request, None))
        if request.is_answered:  # the caller is killed next, and its parent goes on
            written.acquire(timeout=_WRITTEN_WITHIN_S)
        return PAUSED

    def write(self, line: terminals.Line, then: Callable[[Outcome], None]) -> _thread.LockType:
        """Have a worker write the line. Return a lock that is free once it is written. A line that
        is late is dropped: the log has it."""
        written = _thread.allocate_lock()
        written.acquire()

        def work() -> None:
            line.write()
            written.release()

        self._pool.run(work, then, lane=Lane.LINES, deadline_s=_LINE_DEADLINE_S, over=line.close)
        return written
