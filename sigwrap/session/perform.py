"""Carries out the effects that mediators yield. Only this module answers a notification.

Nothing takes effect unrecorded: without an event of its request in the log, an answer is refused,
and with it the call, unless the mediator names an exception (session/effects.py, Unrecorded). A
mediator that raises denies its own request, with an event. However it ends, what the request holds
is let go.

The handler of an effect returns the reply, or PAUSED, or InWorker. After PAUSED, a descriptor, a
timer, an approval or a stop gives the reply later, by `resume` or `wake`. After InWorker, a worker
carries the effect out.
"""

from __future__ import annotations

import _thread
import errno
import time
from collections.abc import Callable

from sigwrap.approve.requests import DENIED, TO_AN_AGENT, Answer
from sigwrap.bare import TYPE_CHECKING, Any, NamedTuple, Protocol
from sigwrap.errors import InternalError
from sigwrap.events import EVENT_TYPES
from sigwrap.kernel import signals, terminals
from sigwrap.kernel.paths import WouldBlock
from sigwrap.kernel.ptrace import ERESTARTNOINTR
from sigwrap.kernel.seccomp import ListenerBroken, Notification
from sigwrap.machine import Interception
from sigwrap.session.effects import (
    Ask,
    ChangeDescriptor,
    Continue,
    ContinueFork,
    ContinueToChildren,
    Effect,
    EndRun,
    ExecTurn,
    Fail,
    Logged,
    Look,
    MakeSocket,
    Reach,
    Record,
    RecordRepeated,
    Send,
    Steps,
    Succeed,
    TakeDigests,
    Tell,
    Unrecorded,
    WouldWait,
    refuse,
)
from sigwrap.session.lineage import Process
from sigwrap.session.loop import Done, Lane, Late, Outcome, Raised
from sigwrap.session.recorder import Repeats
from sigwrap.text import printable

if TYPE_CHECKING:
    from sigwrap.session.session import Session

_LOOK_AFTER_CALLERS_S = 1.0
_WRITTEN_WITHIN_S = 0.005
_LINE_DEADLINE_S = 1.0
_GATHER_FACTS = frozenset({ExecTurn, Look, TakeDigests})
_TIMED = frozenset(kind.name for kind in EVENT_TYPES.values() if "evaluation_us" in kind.fields)

# What may be done for which reason without an event.
_NEEDS_NO_EVENT: dict[Unrecorded, frozenset[type]] = {
    Unrecorded.NOTHING_HAPPENS: frozenset({Fail}),
    Unrecorded.REACHES_NOBODY: frozenset({Continue, Succeed, ChangeDescriptor, Reach, MakeSocket}),
    Unrecorded.ONLY_ASKS: frozenset({Continue, Succeed}),
    Unrecorded.STAYS_INSIDE: frozenset({Continue, Succeed, ChangeDescriptor}),
    Unrecorded.RULE_IS_UNLOGGED: frozenset(
        {Continue, ContinueToChildren, Fail, Succeed, Send, ChangeDescriptor}
    ),
    Unrecorded.NO_RULE: frozenset({Continue, ContinueFork}),
}


class CallerGone(Exception):
    """The caller no longer waits for an answer."""


class CallHandler(Protocol):
    """The handler of a family of calls (exec/handler.py …): it collects the facts for Look."""

    def look(self, request: Request, *, may_wait: bool) -> Any:
        """Read what the call asks for. Raises WouldBlock, unless it may wait: then in a worker."""

    def facts(self, request: Request, seen: Any) -> object:
        """Return the reply to Look, in the loop."""

    def stalled(self, request: Request, why: str) -> object:
        """Return the reply to Look if no worker has read it in time."""

    def drop(self, seen: Any) -> None:
        """Close what was read for a request that is over."""


class NoHoldings:
    """What a request holds until its mediator ends: here, nothing."""

    def failed(self) -> None:
        """Note that the kernel was told to fail the call."""

    def close(self) -> None:
        """Let everything go."""


NO_HOLDINGS = NoHoldings()


class Request:
    """A request, from its notification to the end of its mediator."""

    def __init__(
        self,
        notification: Notification,
        process: Process,
        syscall: str,
        steps: Steps,
        *,
        handler: CallHandler | None = None,
        holdings: Any = NO_HOLDINGS,  # its handler knows more of them
    ) -> None:
        self.id = notification.id
        self.tid = notification.tid
        self.notification = notification
        self.process = process
        self.syscall = syscall
        self.steps = steps
        self.handler = handler
        self.holdings = holdings
        self.started_ns = time.perf_counter_ns()
        self.evaluation_us = -1  # not known before the first effect
        self.is_checked = False  # the caller still waits, so what was read of it is its own
        self.is_recorded = False
        self.recorded: Record | None = None  # the last one
        self.event_failed = False
        self.is_answered = False
        self.is_over = False


PAUSED = object()


class InWorker(NamedTuple):
    """A worker calls `work`, then the loop calls `then` for the reply. If the request is over by
    then, `drop` gets the result instead."""

    work: Callable[[], Any]
    then: Callable[[Outcome], object]
    drop: Callable[[Any], None] | None = None


EffectHandler = Callable[[Request, Any], Any]


class Performer:
    def __init__(self, session: Session, listener: Interception) -> None:
        self._session = session
        self._listener = listener
        self._recorder = session.recorder
        self._repeats = Repeats(session)
        self._approvals = session.approvals
        self._loop = session.loop
        self._pool = session.pool
        self._grants_nothing = False
        self._asking: dict[Request, str] = {}  # -> the id of the approval that it waits for
        self._handlers: dict[type, EffectHandler] = {
            Record: self._record,
            RecordRepeated: self._record,
            Continue: self._continue,
            Fail: self._fail,
            Succeed: self._succeed,
            Ask: self._ask,
            WouldWait: self._would_wait,
            ExecTurn: session.exec_turns.wait,
            Look: self._look,
            Tell: self._tell,
            EndRun: self._on_end_run,
        }
        terminals.allow_writing_to_terminals()

    def offer(self, handlers: dict[type, EffectHandler]) -> None:
        """Add what carries out the effects of one family."""
        self._handlers |= handlers

    def grant_nothing(self) -> None:
        """Refuse all requests from now on, also those that wait: the kill switch is on."""
        self._grants_nothing = True

    @property
    def grants(self) -> bool:
        """Return whether requests go on that the policy allows."""
        return not self._grants_nothing

    def take_over(self, request: Request, *, is_written: bool) -> None:
        """Take over an exec that the extension has recorded and answered.

        If it could not be recorded, the extension has refused it.
        """
        request.is_answered = request.is_recorded = request.is_checked = True
        if is_written:
            request.steps.send(None)
        else:
            self.finish(request)

    def begin(self, request: Request) -> None:
        if self._grants_nothing:
            request.steps.close()
            reason = "builtin:killswitch: the kill switch is on"
            refusal = {"comm": request.process.comm, "reason": reason}
            request.steps = refuse("call_refused", refusal)
        self._perform(request, None)

    def leave_to_the_kernel(self, notification_id: int) -> None:
        """Let a call go on without a mediator: it only asks, and changes nothing."""
        self._listener.resume(notification_id)

    def resume(self, request: Request, reply: object) -> None:
        """Give a paused mediator the reply that it waits for."""
        if self._grants_nothing and not request.is_answered:
            self.finish(request)
        elif not request.is_over:
            self._perform(request, reply)

    def wake(self, request: Request, reply: object = None) -> None:
        """Resume a request whose call waits in the kernel: its caller may have ended meanwhile."""
        request.is_checked = False
        self.resume(request, reply)

    def wake_at(self, deadline_s: float, request: Request, reply: object) -> object:
        """Wake the request later, and return PAUSED for its handler."""
        self._loop.call_at(deadline_s, self.wake, request, reply)
        return PAUSED

    def broke(self, request: Request, bug: Exception) -> None:
        """End a request for a bug of sigwrap's own in what its mediator waits for."""
        if not request.is_over:
            self._report(request, bug)
            self.finish(request)

    def process_ended(self, process: Process) -> None:
        self._repeats.process_ended(process)
        self._approvals.process_ended(process.pid)
        for request in [request for request in self._asking if request.process is process]:
            self._approvals.withdraw(self._asking[request])

    def close(self) -> None:
        self._repeats.close()

    # From one effect to the next

    def _perform(
        self, request: Request, reply: object, then: Callable[[Any], object] | None = None
    ) -> None:
        """`then` makes the first reply of `reply`."""
        steps, handlers = request.steps, self._handlers
        try:
            if then is not None:
                reply = then(reply)
            while reply is not PAUSED:
                if isinstance(reply, InWorker):
                    self._have_done(request, reply)
                    return
                effect = steps.send(reply)
                kind = type(effect)
                if request.evaluation_us < 0 and kind not in _GATHER_FACTS:
                    request.evaluation_us = (time.perf_counter_ns() - request.started_ns) // 1000
                reply = handlers[kind](request, effect)
            return
        except StopIteration:
            if not request.is_answered:
                self._report(request, InternalError("its mediator ended without an answer"))
        except CallerGone:
            pass
        except ListenerBroken:
            self.finish(request)
            raise
        except Exception as bug:
            self._report(request, bug)
        self.finish(request)

    def finish(self, request: Request) -> None:
        """End a request: its mediator is done, its caller is gone, or its call comes again."""
        if request.is_over:
            return
        request.is_over = True
        request.recorded = None
        self._asking.pop(request, None)
        request.steps.close()
        try:
            if not request.is_answered:  # fail closed
                request.is_answered = True
                self._listener.fail(request.id, errno.EPERM)
                request.holdings.failed()
        finally:
            request.holdings.close()

    def _report(self, request: Request, bug: Exception) -> None:
        payload = {
            "error": f"{type(bug).__name__}: {bug}",
            "comm": request.process.comm,
            "answered": request.is_answered,
        }
        self._recorder.record("mediation_failed", request.process.pid, payload)

    def _have_done(self, request: Request, job: InWorker) -> None:
        def finished(outcome: Outcome) -> None:
            if self._grants_nothing and not request.is_answered:
                self.finish(request)
            if not request.is_over:
                self._perform(request, outcome, job.then)
            elif job.drop is not None and isinstance(outcome, Done):
                job.drop(outcome.value)

        self._pool.run(job.work, finished, drop=job.drop)

    # Facts

    def _look(self, request: Request, _effect: Look) -> object:
        handler = request.handler
        assert handler is not None, "its mediator looks"
        request.started_ns = time.perf_counter_ns()
        try:
            seen = handler.look(request, may_wait=False)
        except WouldBlock as too_long:
            why = str(too_long)
        else:
            return handler.facts(request, seen)

        def then(outcome: Outcome) -> object:
            match outcome:
                case Done(value=value):
                    return handler.facts(request, value)
                case Raised(error=WouldBlock() as too_much):
                    return handler.stalled(request, str(too_much))
                case Raised(error=error):
                    raise error
                case Late():
                    return handler.stalled(request, f"{outcome.why}: {why}")

        return InWorker(lambda: handler.look(request, may_wait=True), then, handler.drop)

    # Events

    def check(self, request: Request) -> None:
        """Raise CallerGone if what was read of the caller may be of another process."""
        if not request.is_checked:
            request.is_checked = self._listener.is_waiting(request.id)
        if not request.is_checked:
            raise CallerGone

    def check_again(self, request: Request) -> None:
        """Check after a read: a caller that is killed meanwhile can leave other data behind."""
        request.is_checked = False
        self.check(request)

    def _record(self, request: Request, effect: Record | RecordRepeated) -> Logged:
        self.check(request)
        event, payload, pid = effect.event, effect.payload, request.process.pid
        if event in _TIMED:
            payload["evaluation_us"] = request.evaluation_us
        if isinstance(effect, RecordRepeated):
            logged = self._repeats.record(event, pid, payload, effect.key, effect.within_s)
        else:
            is_written = self._recorder.record(event, pid, payload)
            logged = Logged.WRITTEN if is_written else Logged.FAILED
            request.recorded = effect
        if effect.escalation is not None:  # also if the log is full: that must not be a way out
            self._session.watchers.on_escalation(effect.escalation)
        if logged:
            request.is_recorded = True
        else:
            request.event_failed = True
        return logged

    def demand_event(self, request: Request, effect: Effect, unrecorded: Unrecorded | None) -> None:
        """Raises InternalError where `effect` must not take place for want of an event."""
        if request.event_failed:
            if type(effect) is not Fail:
                name = type(effect).__name__
                raise InternalError(f"{name} after an event that can't be written")
        elif not request.is_recorded and (
            unrecorded is None or type(effect) not in _NEEDS_NO_EVENT[unrecorded]
        ):
            raise InternalError(f"{type(effect).__name__} without an event")

    # Answers

    def _continue(self, request: Request, effect: Continue) -> None:
        self.continue_call(request, effect, effect.unrecorded)

    def _fail(self, request: Request, effect: Fail) -> None:
        self.demand_event(request, effect, effect.unrecorded)
        self.mark_answered(request)
        self._listener.fail(request.id, effect.errno)
        request.holdings.failed()

    def _succeed(self, request: Request, effect: Succeed) -> None:
        self.demand_event(request, effect, effect.unrecorded)
        self.mark_answered(request)
        self._listener.succeed(request.id, effect.value)

    def continue_call(
        self,
        request: Request,
        effect: Effect,
        unrecorded: Unrecorded | None = None,
    ) -> None:
        """Have the kernel continue the call: for handlers that do more than answer."""
        self.demand_event(request, effect, unrecorded)
        self.mark_answered(request)
        self._listener.resume(request.id)

    def restart(self, request: Request, effect: Effect, restarting_errno: int) -> None:
        """Have the kernel make the call again, which then is a new notification."""
        self.demand_event(request, effect, None)
        self.mark_answered(request)
        self._listener.fail(request.id, restarting_errno)

    def came_back(self, request: Request, notification_id: int) -> None:
        request.id = notification_id
        request.is_answered = False

    def mark_answered(self, request: Request) -> None:
        if request.is_answered:
            raise InternalError("a request is answered once")
        request.is_answered = True

    # People

    def _tell(self, request: Request, effect: Tell) -> object:
        """Write the line before the answer, so that it comes before the caller's own."""
        self.check(request)
        advice = TO_AN_AGENT if effect.text.startswith(DENIED) else ""
        line = terminals.Line(request.process.pid, printable(effect.text), off_terminals=advice)
        written = self.write(line, lambda _outcome: self.resume(request, None))
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

    def _would_wait(self, request: Request, effect: WouldWait) -> bool:
        return self._approvals.would_wait(effect.request)

    def _ask(self, request: Request, effect: Ask) -> object:
        self.check(request)
        at_once: list[Answer] = []

        def answered(answer: Answer) -> None:
            if request in self._asking:
                self._answered(request, answer)
            else:
                at_once.append(answer)

        approval_id = self._approvals.ask(effect.request, answered)
        if at_once:
            if at_once[0].reason == "withdrawn":
                raise CallerGone
            return at_once[0]
        if not self._asking:
            self._look_after_callers_later()
        self._asking[request] = approval_id
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

    def _answered(self, request: Request, answer: Answer) -> None:
        del self._asking[request]
        if answer.reason == "withdrawn":
            self.finish(request)
            return
        request.is_checked = False  # the caller may have ended while it waited
        self.resume(request, answer)

    def _look_after_callers_later(self) -> None:
        self._loop.call_in(_LOOK_AFTER_CALLERS_S, self._look_after_callers)

    def _look_after_callers(self) -> None:
        """Withdraw the requests of threads that have ended, and let the others end that have to: a
        signal that dumps core, such as SIGQUIT, does not end the wait of a call."""
        for request, approval_id in tuple(self._asking.items()):
            dumps_core = signals.is_about_to_dump_core(request.tid)
            is_waiting = self._listener.is_waiting(request.id)
            if is_waiting and dumps_core:
                self.mark_answered(request)
                self._listener.fail(request.id, ERESTARTNOINTR)
                request.holdings.failed()
            if dumps_core or not is_waiting:
                self._approvals.withdraw(approval_id)
        if self._asking:
            self._look_after_callers_later()

    def _on_end_run(self, request: Request, effect: EndRun) -> None:
        self._session.ending.on(effect.reason)
