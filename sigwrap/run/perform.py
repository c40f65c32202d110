"""Carries out what mediators yield. Only this file answers a notification.

Nothing takes effect unrecorded: an answer is refused, and with it the call, where no event of its
request is in the log and the mediator names no exception (mediate/effects.py, Unrecorded). What a
request holds is let go when its mediator ends, whatever way it ends. A mediator that raises denies
its own request, with an event, and the run goes on.
"""

from __future__ import annotations

import _thread
import errno
import time
from collections.abc import Callable

from sigwrap.errors import InternalError
from sigwrap.escape import printable
from sigwrap.events import EVENT_TYPES
from sigwrap.hints import TYPE_CHECKING, Any, Protocol
from sigwrap.linux import procfs, stderr_lines
from sigwrap.linux.paths import MayWait
from sigwrap.linux.registers import ERESTARTNOINTR
from sigwrap.linux.seccomp import ListenerBroken, Notification
from sigwrap.mediate.effects import (
    Ask,
    Continue,
    ContinueFork,
    ContinueToChildren,
    ContinueWatched,
    Effect,
    EndRun,
    Fail,
    Logged,
    Look,
    MakeSocket,
    Mediation,
    Reach,
    Record,
    RecordRepeated,
    Send,
    SetAsync,
    SetForeground,
    SetOwner,
    Succeed,
    TakeDigests,
    Tell,
    Turn,
    Unrecorded,
    VerifyThenContinue,
    WouldWait,
)
from sigwrap.mediate.facts import WouldFail
from sigwrap.mediate.lineage import Process
from sigwrap.mediate.questions import Answer
from sigwrap.mediate.refusal import refuse_switched_off
from sigwrap.mediate.wording import DENIED, TO_AN_AGENT
from sigwrap.platform import Interception
from sigwrap.run.repeats import Repeats
from sigwrap.run.workers import Done, Lane, Late, Outcome, Raised
from sigwrap.tuples import NamedTuple

if TYPE_CHECKING:
    from sigwrap.run.session import Session

_LOOK_AFTER_CALLERS_S = 1.0
_WRITTEN_WITHIN_S = 0.005
_LINE_DEADLINE_S = 1.0
_GATHER_FACTS = frozenset({Turn, Look, TakeDigests})
_TIMED = frozenset(kind.name for kind in EVENT_TYPES.values() if "evaluation_us" in kind.fields)

# What may be done for which reason without an event.
_NEEDS_NO_EVENT: dict[Unrecorded, frozenset[type]] = {
    Unrecorded.NOTHING_HAPPENS: frozenset({Fail}),
    Unrecorded.REACHES_NOBODY: frozenset({Continue, Succeed, SetOwner, Reach, MakeSocket}),
    Unrecorded.ONLY_ASKS: frozenset({Continue, Succeed}),
    Unrecorded.STAYS_INSIDE: frozenset({Continue, Succeed, SetAsync, SetForeground}),
    Unrecorded.RULE_IS_UNLOGGED: frozenset(
        {
            Continue,
            ContinueToChildren,
            Fail,
            Succeed,
            Send,
            SetOwner,
            SetAsync,
        }
    ),
    Unrecorded.MOUNT_IS_FREE: frozenset({Continue}),
    Unrecorded.FILE_IS_FREE: frozenset({Continue}),
    Unrecorded.FORK_IS_FREE: frozenset({ContinueFork}),
}


class CallerGone(Exception):
    """Nobody waits for this request any more."""


class Family(Protocol):
    """How facts of its requests are found."""

    def look(self, scope: Scope, *, may_wait: bool) -> Any:
        """Raises MayWait, unless it may: then a worker does it."""

    def facts(self, scope: Scope, seen: Any) -> object:
        """What the mediator gets of it."""

    def stalled(self, scope: Scope, why: str) -> object:
        """What the mediator gets where no worker has found anything in time."""

    def drop(self, seen: Any) -> None:
        """The request is over."""


class Holdings(Protocol):
    """What one request holds, and how its family carries out effects of its own."""

    def failed(self) -> None:
        """The kernel was told that the call fails."""

    def let_others_go(self) -> None:
        """The request waits for an exec of its process: keep nobody whom that may need."""

    def close(self) -> None:
        """The mediator has ended."""


class NoHoldings:
    """What a request holds that holds nothing."""

    __slots__ = ()

    def failed(self) -> None:
        pass

    def let_others_go(self) -> None:
        pass

    def close(self) -> None:
        pass


NO_HOLDINGS = NoHoldings()


class Scope:
    """One request, from its notification to the end of its mediator."""

    __slots__ = (
        "evaluation_us",
        "event_failed",
        "family",
        "holdings",
        "id",
        "is_answered",
        "is_checked",
        "is_over",
        "is_recorded",
        "notification",
        "process",
        "recorded",
        "started_ns",
        "steps",
        "syscall",
        "tid",
    )

    def __init__(
        self,
        notification: Notification,
        process: Process,
        syscall: str,
        steps: Mediation,
        *,
        family: Family | None = None,
        holdings: Any = NO_HOLDINGS,  # Holdings, and what the handlers of its family know of it
    ) -> None:
        self.id = notification.id
        self.tid = notification.tid
        self.notification = notification
        self.process = process
        self.syscall = syscall
        self.steps = steps
        self.family = family
        self.holdings = holdings
        self.started_ns = time.perf_counter_ns()
        self.evaluation_us = -1  # not known before the first effect
        self.is_checked = False  # that the caller still waits: so what was read of it is its own
        self.is_recorded = False
        self.recorded: Record | None = None  # the last one
        self.event_failed = False
        self.is_answered = False
        self.is_over = False


class _Paused:
    pass


PAUSED = _Paused()  # a handler's answer where the reply comes later, by resume


class InWorker(NamedTuple):
    """A handler's answer where a worker has to do it: `work` there, then `then` here, which makes
    the reply. `drop` gets what was found for a request that is over."""

    work: Callable[[], Any]
    then: Callable[[Outcome], object]
    drop: Callable[[Any], None] | None = None


Handler = Callable[[Scope, Any], Any]


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
        self._asking: dict[Scope, str] = {}  # -> the id of the approval that it waits for
        self._handlers: dict[type, Handler] = {
            Record: self._record,
            RecordRepeated: self._record_repeated,
            Continue: self._continue,
            Fail: self._fail,
            Succeed: self._succeed,
            Ask: self._ask,
            WouldWait: self._would_wait,
            Turn: session.turns.wait,
            Look: self._look,
            Tell: self._tell,
            EndRun: self._on_end_run,
        }
        stderr_lines.allow_writing_to_terminals()

    def offer(self, handlers: dict[type, Handler]) -> None:
        """How a family carries out the effects that only it has."""
        self._handlers |= handlers

    def grant_nothing(self) -> None:
        """From now on, and not to those either who wait already: the kill switch is on."""
        self._grants_nothing = True

    @property
    def grants(self) -> bool:
        """Whatever the policy lets go on."""
        return not self._grants_nothing

    def goes_on_already(self, scope: Scope, *, is_written: bool) -> None:
        """The extension has recorded and answered it: its mediator waits for what comes of it.
        Where it could not be recorded, it was refused."""
        scope.is_answered = scope.is_recorded = scope.is_checked = True
        if is_written:
            scope.steps.send(None)
        else:
            self._finish(scope)

    def begin(self, scope: Scope) -> None:
        if self._grants_nothing:
            scope.steps.close()
            scope.steps = refuse_switched_off(scope.process.comm)
        self._perform(scope, None)

    def leave_to_the_kernel(self, notification_id: int) -> None:
        """Without a mediator: a question, which takes no effect."""
        self._listener.resume(notification_id)

    def fail_as_the_kernel(self, notification_id: int, refusal: WouldFail) -> None:
        """Without a mediator: there is nothing to decide, and nothing takes effect."""
        self._listener.fail(notification_id, refusal.errno)

    def resume(self, scope: Scope, reply: object) -> None:
        """With what a paused mediator waits for."""
        self._go_on(scope, lambda: reply)

    def wake(self, scope: Scope, reply: object = None) -> None:
        """Resume a request whose call waits in the kernel: its caller may have ended meanwhile."""
        scope.is_checked = False
        self.resume(scope, reply)

    def wake_at(self, deadline_s: float, scope: Scope, reply: object) -> object:
        """Return PAUSED."""
        self._loop.call_at(deadline_s, lambda: self.wake(scope, reply))
        return PAUSED

    def _go_on(self, scope: Scope, reply: Callable[[], object]) -> None:
        if self._is_refused(scope):
            self._finish(scope)
        elif not scope.is_over:
            self._perform(scope, reply)

    def _is_refused(self, scope: Scope) -> bool:
        return self._grants_nothing and not scope.is_answered

    def drop(self, scope: Scope) -> None:
        """Its caller is gone, or its call will come again as a new request."""
        if not scope.is_over:
            self._finish(scope)

    def broke(self, scope: Scope, bug: Exception) -> None:
        """What its mediator waits for went wrong, for an error of sigwrap's own."""
        if not scope.is_over:
            self._report(scope, bug)
            self._finish(scope)

    def process_ended(self, process: Process) -> None:
        self._repeats.process_ended(process)
        self._approvals.process_ended(process.pid)
        for scope in [scope for scope in self._asking if scope.process is process]:
            self._approvals.withdraw(self._asking[scope])

    def close(self) -> None:
        self._repeats.close()

    # From one effect to the next

    def _perform(self, scope: Scope, first_reply: Callable[[], object] | None) -> None:
        steps, handlers = scope.steps, self._handlers
        try:
            reply = None if first_reply is None else first_reply()
            while reply is not PAUSED:
                if type(reply) is InWorker:
                    self._have_done(scope, reply)
                    return
                effect = steps.send(reply)
                kind = type(effect)
                if scope.evaluation_us < 0 and kind not in _GATHER_FACTS:
                    scope.evaluation_us = (time.perf_counter_ns() - scope.started_ns) // 1000
                reply = handlers[kind](scope, effect)
            return
        except StopIteration:
            if not scope.is_answered:
                self._report(scope, InternalError("its mediator ended without an answer"))
        except CallerGone:
            pass
        except ListenerBroken:
            self._finish(scope)
            raise
        except Exception as bug:
            self._report(scope, bug)
        self._finish(scope)

    def _finish(self, scope: Scope) -> None:
        if scope.is_over:
            return
        scope.is_over = True
        scope.recorded = None
        self._asking.pop(scope, None)
        scope.steps.close()
        try:
            if not scope.is_answered:  # fail closed
                scope.is_answered = True
                self._listener.fail(scope.id, errno.EPERM)
                scope.holdings.failed()
        finally:
            scope.holdings.close()

    def _report(self, scope: Scope, bug: Exception) -> None:
        payload = {
            "error": f"{type(bug).__name__}: {bug}",
            "comm": scope.process.comm,
            "answered": scope.is_answered,
        }
        self._recorder.record("mediation_failed", scope.process.pid, payload)

    def _have_done(self, scope: Scope, job: InWorker) -> None:
        def finished(outcome: Outcome) -> None:
            if not scope.is_over:
                self._go_on(scope, lambda: job.then(outcome))
            elif job.drop is not None and isinstance(outcome, Done):
                job.drop(outcome.value)

        self._pool.run(job.work, finished, drop=job.drop)

    # Facts

    def _look(self, scope: Scope, _effect: Look) -> object:
        family = scope.family
        assert family is not None, "its mediator looks"
        scope.started_ns = time.perf_counter_ns()
        try:
            seen = family.look(scope, may_wait=False)
        except MayWait as too_long:
            why = str(too_long)
        else:
            return family.facts(scope, seen)

        def then(outcome: Outcome) -> object:
            match outcome:
                case Done(value=value):
                    return family.facts(scope, value)
                case Raised(error=MayWait() as too_much):
                    return family.stalled(scope, str(too_much))
                case Raised(error=error):
                    raise error
                case Late():
                    return family.stalled(scope, f"{outcome.why}: {why}")

        return InWorker(lambda: family.look(scope, may_wait=True), then, family.drop)

    # Events

    def still_waits(self, scope: Scope) -> bool:
        """Where not, what was read of the caller may be of another process."""
        if not scope.is_checked:
            scope.is_checked = self._listener.is_waiting(scope.id)
        return scope.is_checked

    def check(self, scope: Scope) -> None:
        if not self.still_waits(scope):
            raise CallerGone

    def check_again(self, scope: Scope) -> None:
        """What is killed while it is looked at can't be looked into any more."""
        scope.is_checked = False
        self.check(scope)

    def _record(self, scope: Scope, effect: Record) -> Logged:
        self.check(scope)
        event, payload, escalation = effect
        if event in _TIMED:
            payload["evaluation_us"] = scope.evaluation_us
        is_written = self._recorder.record(event, scope.process.pid, payload)
        scope.recorded = effect
        if escalation is not None:  # also where the log is full: that must not be a way out
            self._session.watchers.on_escalation(escalation)
        return _noted(scope, Logged.WRITTEN if is_written else Logged.FAILED)

    def _record_repeated(self, scope: Scope, effect: RecordRepeated) -> Logged:
        self.check(scope)
        event, payload, key, within_s, escalation = effect
        if event in _TIMED:
            payload["evaluation_us"] = scope.evaluation_us
        logged = self._repeats.record(event, scope.process.pid, payload, key, within_s)
        if escalation is not None:
            self._session.watchers.on_escalation(escalation)
        return _noted(scope, logged)

    def demand_event(self, scope: Scope, effect: Effect, unrecorded: Unrecorded | None) -> None:
        """Raises InternalError where `effect` must not take place for want of an event."""
        if scope.event_failed:
            if type(effect) is not Fail:
                name = type(effect).__name__
                raise InternalError(f"{name} after an event that can't be written")
        elif not scope.is_recorded and (
            unrecorded is None or type(effect) not in _NEEDS_NO_EVENT[unrecorded]
        ):
            raise InternalError(f"{type(effect).__name__} without an event")

    # Answers

    def _continue(self, scope: Scope, effect: Continue) -> None:
        self.demand_event(scope, effect, effect.unrecorded)
        self._mark_answered(scope)
        self._listener.resume(scope.id)

    def _fail(self, scope: Scope, effect: Fail) -> None:
        self.demand_event(scope, effect, effect.unrecorded)
        self._mark_answered(scope)
        self._listener.fail(scope.id, effect.errno)
        scope.holdings.failed()

    def _succeed(self, scope: Scope, effect: Succeed) -> None:
        self.demand_event(scope, effect, effect.unrecorded)
        self._mark_answered(scope)
        self._listener.succeed(scope.id, effect.value)

    def let_go_on(
        self,
        scope: Scope,
        effect: VerifyThenContinue | ContinueWatched | ContinueFork | ContinueToChildren,
        unrecorded: Unrecorded | None = None,
    ) -> None:
        """For the handlers of a family, which do more than answering."""
        self.demand_event(scope, effect, unrecorded)
        self._mark_answered(scope)
        self._listener.resume(scope.id)

    def restart(self, scope: Scope, effect: Effect, restarting_errno: int) -> None:
        """The kernel makes the call again; it comes back as a new notification."""
        self.demand_event(scope, effect, None)
        self._mark_answered(scope)
        self._listener.fail(scope.id, restarting_errno)

    def answered_with_descriptor(self, scope: Scope) -> None:
        """The kernel has given the caller its answer as it put the descriptor there."""
        self._mark_answered(scope)

    def came_back(self, scope: Scope, notification_id: int) -> None:
        scope.id = notification_id
        scope.is_answered = False

    def _mark_answered(self, scope: Scope) -> None:
        if scope.is_answered:
            raise InternalError("a request is answered once")
        scope.is_answered = True

    # People

    def _tell(self, scope: Scope, effect: Tell) -> object:
        """Before the answer, so that the line comes before the caller's own."""
        self.check(scope)

        def told(_outcome: Outcome) -> None:
            if not scope.is_over:
                self.resume(scope, None)

        advice = TO_AN_AGENT if effect.text.startswith(DENIED) else ""
        written = self._write(scope.process, effect.text, told, off_terminals=advice)
        if scope.is_answered:  # the caller is killed next, and its parent goes on
            written.acquire(timeout=_WRITTEN_WITHIN_S)
        return PAUSED

    def _write(
        self,
        caller: Process,
        text: str,
        then: Callable[[Outcome], None],
        *,
        off_terminals: str = "",
        spares_screens: bool = False,
        spares_ours: bool = False,
    ) -> _thread.LockType:
        line = stderr_lines.Line(
            caller.pid,
            printable(text),
            off_terminals=off_terminals,
            spares_screens=spares_screens,
            spares_ours=spares_ours,
        )
        return self.write(line, then)

    def write(self, line: stderr_lines.Line, then: Callable[[Outcome], None]) -> _thread.LockType:
        """Have a worker write the line. Return a lock that is free once it is written. A line that
        is late is dropped: the log has it."""
        written = _thread.allocate_lock()
        written.acquire()

        def work() -> None:
            line.write()
            written.release()

        self._pool.run(work, then, lane=Lane.LINES, deadline_s=_LINE_DEADLINE_S, over=line.close)
        return written

    def _would_wait(self, scope: Scope, effect: WouldWait) -> bool:
        return self._approvals.would_wait(effect.question)

    def _ask(self, scope: Scope, effect: Ask) -> object:
        self.check(scope)
        at_once: list[Answer] = []

        def answered(answer: Answer) -> None:
            if scope in self._asking:
                self._answered(scope, answer)
            else:
                at_once.append(answer)

        approval_id = self._approvals.ask(effect.question, answered)
        if at_once:
            if at_once[0].reason == "withdrawn":
                raise CallerGone
            return at_once[0]
        if not self._asking:
            self._look_after_callers_later()
        self._asking[scope] = approval_id
        if effect.notice:
            how = self._approvals.how_to_answer(approval_id)
            text = f"sigwrap: request {approval_id}: {effect.notice}; {how}"
            self._write(
                scope.process,
                text,
                lambda _outcome: None,
                spares_screens=True,
                spares_ours=self._approvals.are_on_terminal,
            )
        return PAUSED

    def _answered(self, scope: Scope, answer: Answer) -> None:
        del self._asking[scope]
        if answer.reason == "withdrawn":
            self._finish(scope)
            return
        scope.is_checked = False  # the caller may have ended while it waited
        self.resume(scope, answer)

    def _look_after_callers_later(self) -> None:
        self._loop.call_at(time.monotonic() + _LOOK_AFTER_CALLERS_S, self._look_after_callers)

    def _look_after_callers(self) -> None:
        """Withdraw the requests of threads that have ended, and let the others end that have to: a
        signal that dumps core, such as SIGQUIT, does not end the wait of a call."""
        for scope, approval_id in tuple(self._asking.items()):
            dumps_core = procfs.is_about_to_dump_core(scope.tid)
            is_waiting = self._listener.is_waiting(scope.id)
            if is_waiting and dumps_core:
                self._mark_answered(scope)
                self._listener.fail(scope.id, ERESTARTNOINTR)
                scope.holdings.failed()
            if dumps_core or not is_waiting:
                self._approvals.withdraw(approval_id)
        if self._asking:
            self._look_after_callers_later()

    def _on_end_run(self, scope: Scope, effect: EndRun) -> None:
        self._session.ending.on(effect.reason)


def _noted(scope: Scope, logged: Logged) -> Logged:
    if logged:
        scope.is_recorded = True
    else:
        scope.event_failed = True
    return logged
