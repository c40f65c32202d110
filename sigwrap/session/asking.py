"""Approval requests that a mediator waits for, and lines on the standard error of its caller."""

from __future__ import annotations

import _thread
from collections.abc import Callable

from sigwrap.approve.questions import DENIED, TO_AN_AGENT, Answer
from sigwrap.bare import TYPE_CHECKING
from sigwrap.kernel import signals, terminals
from sigwrap.session.effects import Ask, Tell, WouldWait
from sigwrap.session.lineage import Process
from sigwrap.session.loop import Lane, Outcome
from sigwrap.session.perform import PAUSED, CallerGone, Performer, Request
from sigwrap.text import printable

if TYPE_CHECKING:
    from sigwrap.session.session import Session

_LOOK_AFTER_CALLERS_S = 1.0
_WRITTEN_WITHIN_S = 0.005
_LINE_DEADLINE_S = 1.0


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
        return self._approvals.would_wait(effect.question)

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

        approval_id = self._approvals.ask(effect.question, answered)
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
                spares_ours=self._approvals.approvers.can_show,
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
