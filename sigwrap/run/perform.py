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
from sigwrap.hints import Any, Protocol
from sigwrap.linux import caller_stderr
from sigwrap.linux.seccomp import ListenerBroken
from sigwrap.mediate.effects import (
    Ask,
    Continue,
    ContinueFork,
    ContinueToChildren,
    ContinueWatched,
    Effect,
    EndRun,
    Escalation,
    Fail,
    Logged,
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
    Tell,
    Unrecorded,
    VerifyThenContinue,
    WouldWait,
)
from sigwrap.mediate.facts import WouldFail
from sigwrap.mediate.lineage import Process
from sigwrap.mediate.questions import Answer
from sigwrap.mediate.refusal import refuse_switched_off
from sigwrap.mediate.run_end import LimitReached
from sigwrap.mediate.wording import DENIED, TO_AN_AGENT
from sigwrap.platform import Interception
from sigwrap.run.aside import Aside, Outcome
from sigwrap.run.asking.approvals import Approvals
from sigwrap.run.loop import Loop
from sigwrap.run.recorder import Recorder
from sigwrap.run.repeats import Repeats

_LOOK_AFTER_CALLERS_S = 1.0
_WRITTEN_WITHIN_S = 0.005
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


class Holdings(Protocol):
    """What one request holds, and how its family carries out effects of its own."""

    def failed(self) -> None:
        """The kernel was told that the call fails."""

    def close(self) -> None:
        """The mediator has ended."""


class Scope:
    """One request, from its notification to the end of its mediator."""

    __slots__ = (
        "evaluation_us",
        "event_failed",
        "holdings",
        "id",
        "is_answered",
        "is_checked",
        "is_over",
        "is_recorded",
        "process",
        "recorded",
        "started_ns",
        "steps",
        "tid",
    )

    def __init__(
        self,
        notification_id: int,
        tid: int,
        process: Process,
        steps: Mediation,
        holdings: Any,  # Holdings, and what the handlers of its family know of it
        started_ns: int,
    ) -> None:
        self.id = notification_id
        self.tid = tid
        self.process = process
        self.steps = steps
        self.holdings = holdings
        self.started_ns = started_ns
        self.evaluation_us = -1  # not known before the first effect
        self.is_checked = False  # that the caller still waits: so what was read of it is its own
        self.is_recorded = False
        self.recorded: Record | None = None  # the last one
        self.event_failed = False
        self.is_answered = False
        self.is_over = False


class _Paused:
    pass


PAUSED = _Paused()  # a handler's answer where the reply comes later, by resume or redo
Handler = Callable[[Scope, Any], Any]


class NoHoldings:
    """Of a request that holds nothing."""

    __slots__ = ()

    def failed(self) -> None:
        pass

    def close(self) -> None:
        pass


NO_HOLDINGS = NoHoldings()


class Performer:
    def __init__(
        self,
        *,
        listener: Interception,
        recorder: Recorder,
        approvals: Approvals,
        loop: Loop,
        writers: Aside,
        end_run: Callable[[LimitReached], None],
        escalate: Callable[[Escalation], None],
    ) -> None:
        """`writers`: of lines to callers, and of nothing else. A line that none of them can write
        is dropped, so it keeps nothing from its worker."""
        self._listener = listener
        self._recorder = recorder
        self._repeats = Repeats(recorder, loop)
        self._approvals = approvals
        self._loop = loop
        self._writers = writers
        self._end_run = end_run
        self._escalate = escalate
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
            Tell: self._tell,
            EndRun: self._on_end_run,
        }
        caller_stderr.allow_writing_to_terminals()

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
        self._go_on(scope, reply)

    def redo(self, scope: Scope, effect: Effect) -> None:
        """What an effect had to wait for has happened."""
        self._go_on(scope, None, effect)

    def _go_on(self, scope: Scope, reply: object, first: Effect | None = None) -> None:
        if self._is_refused(scope):
            self._finish(scope)
        elif not scope.is_over:
            self._perform(scope, reply, first)

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

    def _perform(self, scope: Scope, reply: object, effect: Effect | None = None) -> None:
        steps, handlers = scope.steps, self._handlers
        try:
            if effect is None:
                effect = steps.send(reply)
            if scope.evaluation_us < 0:
                scope.evaluation_us = (time.perf_counter_ns() - scope.started_ns) // 1000
            while True:
                reply = handlers[type(effect)](scope, effect)
                if reply is PAUSED:
                    return
                effect = steps.send(reply)
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
            self._escalate(escalation)
        return _noted(scope, Logged.WRITTEN if is_written else Logged.FAILED)

    def _record_repeated(self, scope: Scope, effect: RecordRepeated) -> Logged:
        self.check(scope)
        event, payload, key, within_s, escalation = effect
        if event in _TIMED:
            payload["evaluation_us"] = scope.evaluation_us
        logged = self._repeats.record(event, scope.process.pid, payload, key, within_s)
        if escalation is not None:
            self._escalate(escalation)
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
        if written is None:
            return None
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
    ) -> _thread.LockType | None:
        line = caller_stderr.Line(
            caller.pid,
            printable(text),
            off_terminals=off_terminals,
            spares_screens=spares_screens,
            spares_ours=spares_ours,
        )
        return self.write(line, then)

    def write(
        self, line: caller_stderr.Line, then: Callable[[Outcome], None]
    ) -> _thread.LockType | None:
        """A lock that is free once the line is written. None where no worker is to be had; the log
        has it."""
        written = _thread.allocate_lock()
        written.acquire()

        def work() -> None:
            line.write()
            written.release()

        try:
            self._writers.do(work, then, over=line.close)
        except (OSError, RuntimeError):
            line.close()
            return None
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
        """A thread that dies while it waits is not told of by the end of its process."""
        for scope, approval_id in tuple(self._asking.items()):
            if not self._listener.is_waiting(scope.id):
                self._approvals.withdraw(approval_id)
        if self._asking:
            self._look_after_callers_later()

    def _on_end_run(self, scope: Scope, effect: EndRun) -> None:
        self._end_run(effect.reason)


def _noted(scope: Scope, logged: Logged) -> Logged:
    if logged:
        scope.is_recorded = True
    else:
        scope.event_failed = True
    return logged
