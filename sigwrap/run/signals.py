"""Gathers the facts of signal requests, and carries out the effects of the signal mediator."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

from sigwrap.bare import TYPE_CHECKING
from sigwrap.errors import KernelError
from sigwrap.linux import procfs
from sigwrap.linux.foreign_fds import closes_at_once, let_go
from sigwrap.linux.pidfd import duplicate
from sigwrap.linux.seccomp import Notification, int32
from sigwrap.linux.signals.aim import TargetResolver
from sigwrap.linux.signals.call import SignalCall, pointed_at, read, undecoded
from sigwrap.linux.signals.send import is_still, may_change, send, set_async, set_limits, set_owner
from sigwrap.linux.signals.targets import Targets, refresh_comm
from sigwrap.mediate.effects import (
    ContinueToChildren,
    LetGo,
    LookAgain,
    Send,
    SetAsync,
    SetForeground,
    SetLimits,
    SetOwner,
    SignalTarget,
)
from sigwrap.mediate.lineage import Process
from sigwrap.mediate.signal import SignalMediator
from sigwrap.mediate.signal_facts import SignalFacts, Stalled
from sigwrap.mediate.signal_rules import IGNORED_BY_DEFAULT
from sigwrap.policy.judge.request import TargetType
from sigwrap.run.perform import PAUSED, NoHoldings, Scope
from sigwrap.run.workers import Done, Lane, Outcome, Raised

if TYPE_CHECKING:
    from sigwrap.run.mediation import Mediation
    from sigwrap.run.session import Session

_CLOSE_DEADLINE_S = 1.0


class _SignalHoldings(NoHoldings):
    __slots__ = ("call",)

    def __init__(self) -> None:
        self.call = undecoded("")

    def hold(self, fd: int) -> SignalCall:
        self.call = self.call._replace(held=fd)
        return self.call

    def give_up(self) -> int:
        """Return the held descriptor for the receiver to close; -1 if there is none."""
        held, self.call = self.call.held, self.call._replace(held=-1)
        return held

    def close(self) -> None:
        held = self.give_up()
        if held >= 0:
            let_go(held)


class Signals:
    def __init__(self, session: Session, mediation: Mediation) -> None:
        self._performer = performer = mediation.performer
        self._listener = mediation.listener
        self._mediator = SignalMediator(session.engine, domain=session.facts.walls.domain)
        self._targets = Targets(session.processes, session.facts.sigwrap_pids)
        self._resolver = TargetResolver(self._targets)
        self._recordings = mediation.recordings
        self._restarts = mediation.restarts
        self._pool = session.pool
        performer.offer(
            {
                ContinueToChildren: self._continue_to_children,
                Send: self._send,
                SetOwner: self._set_owner,
                SetAsync: self._set_async,
                SetForeground: self._set_foreground,
                SetLimits: self._set_limits,
                LetGo: self._let_go,
                LookAgain: self._look_again,
            }
        )

    def begin(self, notification: Notification, sender: Process, syscall: str) -> None:
        if syscall == "kill" and self._kernel_knows_the_answer(notification, sender):
            self._performer.leave_to_the_kernel(notification.id)
            return
        steps = self._mediator.mediate()
        held = _SignalHoldings()
        self._performer.begin(
            Scope(notification, sender, syscall, steps, family=self, holdings=held)
        )

    def look(self, scope: Scope, *, may_wait: bool) -> bytes | None:
        """The memory that the call points to."""
        place = pointed_at(scope.notification, scope.syscall)
        return b"" if place is None else read(scope.tid, place, may_wait=may_wait)

    def facts(self, scope: Scope, words: bytes | None) -> SignalFacts:
        notification, sender, syscall = scope.notification, scope.process, scope.syscall
        refresh_comm(sender)
        call, aim = self._resolver.resolve(notification, sender, syscall, words)
        scope.holdings.call = call
        return SignalFacts(
            sender,
            syscall,
            call.signal,
            call.how,
            aim,
            notification.id,
            self._recordings.own_targets(sender),
            procfs.catches_or_ignores,
            lambda target: may_change(sender, call, target),
        )

    def stalled(self, scope: Scope, _why: str) -> SignalFacts:
        return self.facts(scope, None)._replace(aim=Stalled())

    def drop(self, words: bytes | None) -> None:
        pass

    def _kernel_knows_the_answer(self, notification: Notification, sender: Process) -> bool:
        """Return whether it is signal 0 to a process inside, which Landlock lets through."""
        target, number = int32(notification.argument0), int32(notification.argument1)
        return number == 0 and self._targets.is_known_inside(sender, target)

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
        """Set O_ASYNC or its signal in a worker, because pipes and sockets take their lock for it.

        The call's descriptor stays open until the worker is done.
        """
        self._performer.demand_event(scope, effect, effect.unrecorded)
        self._performer.check(scope)
        call, held = scope.holdings.call, scope.holdings.give_up()

        def over() -> None:
            if not scope.is_over:
                scope.holdings.hold(held)
            elif held >= 0:
                let_go(held)

        def told(outcome: Outcome) -> None:
            if scope.is_over:
                return
            reply = self._let_go_then(scope, _error_of(outcome))
            if reply is not PAUSED:
                self._performer.resume(scope, reply)

        self._pool.run(lambda: set_async(scope.process, call), told, over=over)
        return PAUSED

    def _set_foreground(self, scope: Scope, effect: SetForeground) -> object:
        return self._carry_out(scope, effect, lambda call: os.tcsetpgrp(call.held, effect.group))

    def _set_limits(self, scope: Scope, effect: SetLimits) -> object:
        return self._carry_out(
            scope, effect, lambda call: set_limits(scope.process, scope.tid, call, effect.target)
        )

    def _carry_out(
        self,
        scope: Scope,
        effect: Send | SetOwner | SetForeground | SetLimits,
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
        """Close the descriptor before the answer: the caller's own close must be the last."""
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

    def _let_go(self, scope: Scope, effect: LetGo) -> object:
        waits = self._restarts.let_go_soon(effect.pid, scope, True)
        return PAUSED if waits else False

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
