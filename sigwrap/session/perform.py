"""Carries out the effects that mediators yield. Only this module answers a notification, except
the trial call of a start and execs that ran before (exec/_repeated.c).

Nothing takes effect unrecorded: without an event of its request in the log, an answer is refused,
and with it the call, unless the mediator names an exception (session/effects.py, Unrecorded). A
mediator that raises denies its own request, with an event. However it ends, what the request holds
is let go.

The handler of an effect returns the reply, or PAUSED, or InWorker. After PAUSED, a descriptor, a
timer, an approval or a stop gives the reply later, by `resume` or `wake`. After InWorker, a worker
carries the effect out.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable

from sigwrap.bare import TYPE_CHECKING, Any, NamedTuple, Protocol
from sigwrap.errors import InternalError
from sigwrap.events import EVENT_TYPES
from sigwrap.kernel.paths import WouldBlock
from sigwrap.kernel.ptrace import ERESTARTNOINTR
from sigwrap.kernel.seccomp import ListenerBroken, Notification
from sigwrap.machine import Interception
from sigwrap.session import effects
from sigwrap.session.effects import Effect, Logged, Steps, Unrecorded
from sigwrap.session.lineage import Process
from sigwrap.session.loop import Done, Late, Outcome, Raised
from sigwrap.session.recorder import EncodedEvent, Repeats

if TYPE_CHECKING:
    from sigwrap.session.session import Session

_GATHER_FACTS = frozenset({effects.ExecTurn, effects.Look})
_TIMED = frozenset(kind.name for kind in EVENT_TYPES.values() if "evaluation_us" in kind.fields)


class CallerGone(Exception):
    """The caller no longer waits for an answer."""


class CallHandler(Protocol):
    """The handler of a family of calls (exec/handler.py …): it collects the facts for Look."""

    def look(self, request: Request, *, may_wait: bool) -> Any:
        """Read what the call asks for. Raises WouldBlock, unless it may wait: then in a worker."""

    def facts(self, request: Request, seen: Any) -> object:
        """Return the reply to Look, or InWorker; in the loop."""

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
        self.recorded: effects.Record | None = None  # the last one
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
        self._loop = session.loop
        self._pool = session.pool
        self._grants_nothing = False
        self._handlers: dict[type, EffectHandler] = {
            effects.Record: self._record,
            effects.RecordRepeated: self._record,
            effects.Continue: self._continue,
            effects.Fail: self._fail,
            effects.Succeed: self._succeed,
            effects.ExecTurn: session.exec_turns.wait,
            effects.Look: self._look,
            effects.EndRun: self._end_run,
        }

    def offer(self, handlers: dict[type, EffectHandler]) -> None:
        """Add what carries out other effects: approvals, and the effects of one family."""
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
            request.steps = effects.refuse("call_refused", refusal)
        self._perform(request, None)

    def record_again(
        self, notification_id: int, pid: int, event: EncodedEvent, started_ns: int
    ) -> bool:
        """Record a call that is like an earlier one. Return whether it may go on: it fails without
        its event, and its caller may have ended."""
        if not self._listener.is_waiting(notification_id):
            return False
        took_us = (time.perf_counter_ns() - started_ns) // 1000
        is_recorded = self._recorder.record_again(event, pid, took_us)
        if not is_recorded:
            self._listener.fail(notification_id, errno.EPERM)
        return is_recorded

    def leave_to_the_kernel(self, notification_id: int) -> None:
        """Let a call go on without a mediator: it is recorded, or it only asks."""
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

    def _look(self, request: Request, _effect: effects.Look) -> object:
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
            request.is_checked = self.is_waiting(request)
        if not request.is_checked:
            raise CallerGone

    def is_waiting(self, request: Request) -> bool:
        """Return whether the caller still waits for the answer."""
        return self._listener.is_waiting(request.id)

    def check_again(self, request: Request) -> None:
        """Check after a read: a caller that is killed meanwhile can leave other data behind."""
        request.is_checked = False
        self.check(request)

    def _record(self, request: Request, effect: effects.Record | effects.RecordRepeated) -> Logged:
        self.check(request)
        event, payload, pid = effect.event, effect.payload, request.process.pid
        if event in _TIMED:
            payload["evaluation_us"] = request.evaluation_us
        if isinstance(effect, effects.RecordRepeated):
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
        if request.event_failed and type(effect) is not effects.Fail:
            name = type(effect).__name__
            raise InternalError(f"{name} after an event that can't be written")
        if not (request.event_failed or request.is_recorded or unrecorded):
            raise InternalError(f"{type(effect).__name__} without an event")

    # Answers

    def _continue(self, request: Request, effect: effects.Continue) -> None:
        self.continue_call(request, effect, effect.unrecorded)

    def _fail(self, request: Request, effect: effects.Fail) -> None:
        self.demand_event(request, effect, effect.unrecorded)
        self.mark_answered(request)
        self._listener.fail(request.id, effect.errno)
        request.holdings.failed()

    def _succeed(self, request: Request, effect: effects.Succeed) -> None:
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

    def interrupt(self, request: Request) -> None:
        """Have the kernel make the call again, unless a signal ends its caller first."""
        self.mark_answered(request)
        self._listener.fail(request.id, ERESTARTNOINTR)
        request.holdings.failed()

    def came_back(self, request: Request, notification_id: int) -> None:
        request.id = notification_id
        request.is_answered = False

    def mark_answered(self, request: Request) -> None:
        if request.is_answered:
            raise InternalError("a request is answered once")
        request.is_answered = True

    def _end_run(self, _request: Request, effect: effects.EndRun) -> None:
        self._session.ending.run.limit_reached(effect.reason)
