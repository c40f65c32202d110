"""The edge of the signal mediator: a request's facts in, its effects carried out."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable

from sigwrap.errors import KernelError
from sigwrap.linux import procfs
from sigwrap.linux.foreign_fds import closes_at_once, let_go
from sigwrap.linux.pidfd import duplicate
from sigwrap.linux.registers import ERESTARTNOINTR
from sigwrap.linux.seccomp import Listener, Notification, int32
from sigwrap.linux.signals.advice import advise, check_may_advise
from sigwrap.linux.signals.aim import Aims
from sigwrap.linux.signals.call import SignalCall
from sigwrap.linux.signals.owners import set_async
from sigwrap.linux.signals.parents import may_change, set_limits
from sigwrap.linux.signals.send import is_still, send, set_owner
from sigwrap.linux.signals.take import take_descriptor
from sigwrap.linux.signals.targets import Targets, refresh_comm
from sigwrap.linux.signals.words import pointed_at, read
from sigwrap.mediate.effects import (
    Advise,
    ContinueToChildren,
    LookAgain,
    Send,
    SetAsync,
    SetForeground,
    SetLimits,
    SetOwner,
    SignalTarget,
    TakeDescriptor,
)
from sigwrap.mediate.facts import WouldFail
from sigwrap.mediate.lineage import Process
from sigwrap.mediate.signal import SignalMediator
from sigwrap.mediate.signal_facts import Aim, How, NotOwn, SignalFacts, Stalled
from sigwrap.mediate.signal_rules import IGNORED_BY_DEFAULT
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.request import TargetType
from sigwrap.run.perform import PAUSED, NoHoldings, Performer, Scope
from sigwrap.run.processes import Processes
from sigwrap.run.recording.recordings import Recordings
from sigwrap.run.restarts import Restarts
from sigwrap.run.workers import Done, FactFinder, Lane, Late, Outcome, Raised, WorkerPool

_CLOSE_DEADLINE_S = 1.0
_TRACES = (How.TRACE, How.TRACE_ON, How.TRACED_BY_PARENT)


class _SignalHoldings(NoHoldings):
    __slots__ = ("call",)

    def __init__(self, call: SignalCall) -> None:
        self.call = call

    def hold(self, fd: int) -> SignalCall:
        self.call = self.call._replace(held=fd)
        return self.call

    def give_up(self) -> int:
        """It is somebody else's to close; -1 where nothing is held."""
        held, self.call = self.call.held, self.call._replace(held=-1)
        return held

    def close(self) -> None:
        held = self.give_up()
        if held >= 0:
            let_go(held)


class Signals:
    def __init__(
        self,
        *,
        performer: Performer,
        listener: Listener,
        engine: Engine,
        processes: Processes,
        recordings: Recordings,
        sigwrap_pids: frozenset[int],
        restarts: Restarts,
        pool: WorkerPool,
        answer_now: Callable[[Notification], None],
        domain: bool,
    ) -> None:
        """`answer_now`: a request that was put off, if its caller still waits."""
        self._performer = performer
        self._listener = listener
        self._mediator = SignalMediator(engine, domain=domain)
        self._targets = Targets(processes, sigwrap_pids)
        self._aims = Aims(self._targets)
        self._recordings = recordings
        self._restarts = restarts
        self._pool = pool
        self._answer_now = answer_now
        self._words = FactFinder(pool, answer_now)  # what a call's pointer leads to
        performer.offer(
            {
                ContinueToChildren: self._continue_to_children,
                Send: self._send,
                SetOwner: self._set_owner,
                SetAsync: self._set_async,
                SetForeground: self._set_foreground,
                TakeDescriptor: self._take_descriptor,
                Advise: self._advise,
                SetLimits: self._set_limits,
                LookAgain: self._look_again,
            }
        )

    def begin(self, notification: Notification, sender: Process, syscall: str) -> None:
        """Raises UnknownUse."""
        if syscall == "kill" and self._kernel_knows_the_answer(notification, sender):
            self._performer.leave_to_the_kernel(notification.id)
            return
        place = pointed_at(notification, syscall)
        if place is None:
            self._begin(notification, sender, syscall, Done(b""))
        else:
            found = self._words.find(
                notification, lambda may_wait: read(notification.tid, place, may_wait=may_wait)
            )
            if found is not None:
                self._begin(notification, sender, syscall, found)

    def _kernel_knows_the_answer(self, notification: Notification, sender: Process) -> bool:
        """To a question about who is inside."""
        target, number = int32(notification.argument0), int32(notification.argument1)
        return number == 0 and self._targets.is_known_inside(sender, target)

    def _begin(
        self, notification: Notification, sender: Process, syscall: str, words: Outcome
    ) -> None:
        """`words`: what the call's pointer leads to."""
        started_ns = time.perf_counter_ns()
        refresh_comm(sender)
        call, aim = self._aims.look(
            notification, sender, syscall, words.value if isinstance(words, Done) else None
        )
        if isinstance(words, Late):
            aim = Stalled()
        if call.how in _TRACES and self._comes_again(notification, call, aim):
            return
        sender.seizes |= call.seizes and call.how is How.TRACE
        own_targets = self._recordings.own_targets(sender)
        facts = SignalFacts(
            sender,
            syscall,
            call.signal,
            call.how,
            aim,
            notification.id,
            own_targets,
            procfs.catches_or_ignores,
            lambda target: may_change(sender, call, target),
        )
        steps = self._mediator.mediate(facts)
        held = _SignalHoldings(call)
        self._performer.begin(
            Scope(notification.id, notification.tid, sender, steps, held, started_ns)
        )

    def _comes_again(self, notification: Notification, call: SignalCall, aim: Aim) -> bool:
        match call.how:
            case How.TRACE:
                return self._is_traced_by_us(notification, aim)
            case How.TRACED_BY_PARENT:
                comes_again = self._restarts.let_go_soon(notification.tid)
            case _:  # whom it traces
                is_aimed = isinstance(aim, (SignalTarget, NotOwn))
                comes_again = is_aimed and self._restarts.with_stops_after_execs(notification)
        if comes_again:
            self._performer.fail_as_the_kernel(notification.id, WouldFail(ERESTARTNOINTR))
        return comes_again

    def _is_traced_by_us(self, notification: Notification, aim: Aim) -> bool:
        """Then this is looked at again when it isn't any more."""
        return isinstance(aim, SignalTarget) and self._restarts.let_go_soon(
            aim.pid, lambda: self._answer_now(notification)
        )

    # Effects

    def _continue_to_children(self, scope: Scope, effect: ContinueToChildren) -> None:
        self._restarts.expects_ends(scope.process.pid)
        self._performer.let_go_on(scope, effect, effect.unrecorded)

    def _send(self, scope: Scope, effect: Send) -> object:
        def run(call: SignalCall) -> None:
            target = self._with_thread(scope, effect.target)
            if TargetType.CHILDREN in target.types and effect.signal not in IGNORED_BY_DEFAULT:
                self._restarts.expects_ends(scope.process.pid)
            send(scope.process, call, target, effect.signal)

        return self._carry_out(scope, effect, run)

    def _set_owner(self, scope: Scope, effect: SetOwner) -> object:
        def run(call: SignalCall) -> None:
            target = None if effect.target is None else self._with_thread(scope, effect.target)
            call = scope.holdings.hold(duplicate(scope.tid, call.descriptor))
            set_owner(scope.process, call, target)

        return self._carry_out(scope, effect, run)

    def _set_async(self, scope: Scope, effect: SetAsync) -> object:
        """Has a worker do it: for O_ASYNC, a pipe and a socket take their lock."""
        self._performer.demand_event(scope, effect, effect.unrecorded)
        self._performer.check(scope)
        return self._have_done(
            Lane.REQUESTS,
            scope,
            lambda call: set_async(scope.process, call),
            lambda outcome: self._let_go_then(scope, _error_of(outcome)),
        )

    def _set_foreground(self, scope: Scope, effect: SetForeground) -> object:
        return self._carry_out(scope, effect, lambda call: os.tcsetpgrp(call.held, effect.group))

    def _set_limits(self, scope: Scope, effect: SetLimits) -> object:
        return self._carry_out(
            scope, effect, lambda call: set_limits(scope.process, scope.tid, call, effect.target)
        )

    def _take_descriptor(self, scope: Scope, effect: TakeDescriptor) -> object:
        def run(call: SignalCall) -> None:
            taken = take_descriptor(scope.process, call, effect.target)
            try:
                self._listener.answer_with_descriptor(scope.id, taken)
            finally:
                let_go(taken)
            self._performer.answered_with_descriptor(scope)

        return self._carry_out(scope, effect, run)

    def _advise(self, scope: Scope, effect: Advise) -> object:
        """Have a worker do it: it takes as long as the target has pages."""
        self._performer.demand_event(scope, effect, effect.unrecorded)
        self._performer.check(scope)
        target = effect.target
        try:
            check_may_advise(scope.process, scope.holdings.call, target)
        except OSError as refusal:
            return refusal.errno

        def then(outcome: Outcome) -> int:
            if isinstance(outcome, Done):
                self._performer.succeed_with(scope, outcome.value)
            return _error_of(outcome)

        return self._have_done(Lane.ADVICE, scope, lambda call: advise(call, target), then)

    def _have_done(
        self,
        lane: Lane,
        scope: Scope,
        run: Callable[[SignalCall], object],
        then: Callable[[Outcome], object],
    ) -> object:
        """Has a worker run it. The call's descriptor stays open until the worker is done. `then`
        makes the reply."""
        call, held = scope.holdings.call, scope.holdings.give_up()

        def over() -> None:
            if not scope.is_over:
                scope.holdings.hold(held)
            elif held >= 0:
                let_go(held)

        def told(outcome: Outcome) -> None:
            if not scope.is_over and (reply := then(outcome)) is not PAUSED:
                self._performer.resume(scope, reply)

        self._pool.run(lambda: run(call), told, lane=lane, over=over)
        return PAUSED

    def _carry_out(
        self,
        scope: Scope,
        effect: Send | SetOwner | SetForeground | TakeDescriptor | SetLimits,
        run: Callable[[SignalCall], None],
    ) -> object:
        self._performer.demand_event(scope, effect, effect.unrecorded)
        self._performer.check(scope)
        try:
            run(scope.holdings.call)
            error = 0
        except (KernelError, OSError) as refusal:
            error = refusal.errno or errno.EPERM
        return self._let_go_then(scope, error)

    def _let_go_then(self, scope: Scope, reply: int) -> object:
        """Before the answer: the caller's own close must be the last."""
        held = scope.holdings.give_up()
        if held < 0:
            return reply
        if closes_at_once(held):
            os.close(held)
            return reply
        left = [held]
        self._pool.run(
            lambda: os.close(left.pop()),
            lambda _outcome: self._performer.resume(scope, reply),
            lane=Lane.CLOSES,
            deadline_s=_CLOSE_DEADLINE_S,
            over=lambda: let_go(left.pop()) if left else None,  # no worker began with it
        )
        return PAUSED

    def _look_again(self, _scope: Scope, effect: LookAgain) -> bool:
        return is_still(effect.target)

    def _with_thread(self, scope: Scope, target: SignalTarget) -> SignalTarget:
        thread = scope.holdings.call.thread
        if not thread:
            return target
        tid = self._targets.threads_number(scope.process, thread)
        if not tid:
            raise ProcessLookupError(errno.ESRCH, "no such thread")
        return target._replace(thread=tid)


def _error_of(outcome: Outcome) -> int:
    match outcome:
        case Done():
            return 0
        case Raised(error=KernelError() | OSError() as refusal):
            return refusal.errno or errno.EPERM
    return errno.EAGAIN
