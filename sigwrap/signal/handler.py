"""Gather the facts of a signal for its mediator, and carry out the effects of signals alone."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable

from sigwrap.bare import TYPE_CHECKING
from sigwrap.errors import KernelError
from sigwrap.kernel import signals
from sigwrap.kernel.descriptors import duplicate, let_go
from sigwrap.kernel.seccomp import Notification, int32
from sigwrap.policy.judge.request import TargetType
from sigwrap.session.effects import (
    ContinueToChildren,
    LetGo,
    LookAgain,
    Send,
    SetAsync,
    SetForeground,
    SetOwner,
    SignalTarget,
)
from sigwrap.session.lineage import Process
from sigwrap.session.loop import Done, Lane, Outcome, Raised
from sigwrap.session.perform import PAUSED, NoHoldings, Request
from sigwrap.session.processes import refresh_comm
from sigwrap.signal.call import (
    SignalCall,
    read_words,
    undecoded,
)
from sigwrap.signal.facts import (
    IGNORED_BY_DEFAULT,
    UNREAD,
    How,
    Refused,
    SignalFacts,
)
from sigwrap.signal.judge import SignalMediator
from sigwrap.signal.send import (
    is_still,
    may_change,
    send,
    set_async,
    set_owner,
)
from sigwrap.signal.targets import TargetResolver, Targets

if TYPE_CHECKING:
    from sigwrap.session.mediation import Mediation
    from sigwrap.session.session import Session

_LOOK_AGAIN_S = 0.005


class _SignalHoldings(NoHoldings):
    __slots__ = ("call",)

    def __init__(self) -> None:
        self.call = undecoded("")

    def give_up(self) -> int:
        """Return the held descriptor for the receiver to close; -1 if there is none."""
        held, self.call = self.call.held, self.call._replace(held=-1)
        return held

    def close(self) -> None:
        held = self.give_up()
        if held >= 0:
            let_go(held)


class Signals:
    """The handler of signals."""

    def __init__(self, session: Session, mediation: Mediation) -> None:
        self._performer = performer = mediation.performer
        self._mediator = SignalMediator(session.engine, domain=session.facts.sandbox.domain)
        self._targets = Targets(session)
        self._resolver = TargetResolver(self._targets)
        self._recordings = mediation.recordings.running
        self._restarts = mediation.restarts
        self._pool = session.pool
        performer.offer(
            {
                ContinueToChildren: self._continue_to_children,
                Send: self._send,
                SetOwner: self._set_owner,
                SetAsync: self._set_async,
                SetForeground: self._set_foreground,
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
            Request(notification, sender, syscall, steps, handler=self, holdings=held)
        )

    def look(self, request: Request, *, may_wait: bool) -> bytes | None:
        """Return the memory that the call points to."""
        return read_words(request.notification, request.syscall, may_wait=may_wait)

    def facts(self, request: Request, words: bytes | None) -> SignalFacts:
        notification, sender, syscall = request.notification, request.process, request.syscall
        refresh_comm(sender)
        call, aim = self._resolver.resolve(notification, sender, syscall, words)
        request.holdings.call = call
        recording = self._recordings.get(sender)
        return SignalFacts(
            sender,
            syscall,
            call.signal,
            call.how,
            aim,
            notification.id,
            # A stub passes signals on to its command, and ends as the command did.
            () if recording is None else (sender.pid, recording.command.pid),
            signals.catches_or_ignores,
            changes_its_shell=(
                call.how is How.CHANGE
                and isinstance(aim, SignalTarget)
                and may_change(sender, call, aim)
            ),
        )

    def stalled(self, request: Request, _why: str) -> SignalFacts:
        return self.facts(request, None)._replace(aim=Refused(UNREAD))

    def drop(self, words: bytes | None) -> None:
        pass

    def _kernel_knows_the_answer(self, notification: Notification, sender: Process) -> bool:
        """Return whether it is signal 0 to a process inside, which Landlock lets through."""
        target, number = int32(notification.argument0), int32(notification.argument1)
        return number == 0 and self._targets.is_known_inside(sender, target)

    # Effects

    def _continue_to_children(self, request: Request, effect: ContinueToChildren) -> None:
        self._restarts.expects_ends(request.process.pid)
        self._performer.continue_call(request, effect, effect.unrecorded)

    def _send(self, request: Request, effect: Send) -> int:
        def run(call: SignalCall) -> None:
            target = self._with_thread(request, effect.target)
            if TargetType.CHILDREN in target.types and effect.signal not in IGNORED_BY_DEFAULT:
                self._restarts.expects_ends(request.process.pid)
            send(request.process, call, target, effect.signal)

        return self._carry_out(request, effect, run)

    def _set_foreground(self, request: Request, effect: SetForeground) -> int:
        error = self._carry_out(request, effect, lambda call: os.tcsetpgrp(call.held, effect.group))
        request.holdings.close()
        return error

    def _carry_out(
        self,
        request: Request,
        effect: Send | SetForeground,
        run: Callable[[SignalCall], None],
    ) -> int:
        self._performer.demand_event(request, effect, effect.unrecorded)
        self._performer.check(request)
        try:
            run(request.holdings.call)
        except (KernelError, OSError) as refusal:
            return refusal.errno or errno.EPERM
        return 0

    def _set_owner(self, request: Request, effect: SetOwner) -> object:
        self._performer.demand_event(request, effect, effect.unrecorded)
        self._performer.check(request)
        call = request.holdings.call
        try:
            target = effect.target and self._with_thread(request, effect.target)
            is_group = call.target < 0
            group = self._targets.our_group(request.process, -call.target) if is_group else None
            request.holdings.call = call._replace(held=duplicate(request.tid, call.descriptor))
        except (KernelError, OSError) as refusal:
            return refusal.errno or errno.EPERM
        return self._in_worker(
            request, lambda call: set_owner(request.process, call, target, group)
        )

    def _set_async(self, request: Request, effect: SetAsync) -> object:
        self._performer.demand_event(request, effect, effect.unrecorded)
        self._performer.check(request)
        return self._in_worker(request, lambda call: set_async(request.process, call))

    def _in_worker(self, request: Request, change: Callable[[SignalCall], None]) -> object:
        """Change the call's descriptor, and close it before the answer: the caller's own close must
        be the last. Pipes and sockets take their lock for the first, and the second can wait."""
        call = request.holdings.call
        left = [request.holdings.give_up()]

        def work() -> None:
            try:
                change(call)
            finally:
                os.close(left.pop())

        def then(outcome: Outcome) -> None:
            if not request.is_over:
                self._performer.resume(request, _error_of(outcome))

        def over() -> None:
            if left:  # no worker has begun with it
                let_go(left.pop())

        self._pool.run(work, then, lane=Lane.CLOSES, over=over)
        return PAUSED

    def _let_go(self, request: Request, effect: LetGo) -> object:
        if not self._restarts.let_go(effect.pid):
            return False
        return self._performer.wake_at(time.monotonic() + _LOOK_AGAIN_S, request, True)

    def _look_again(self, _request: Request, effect: LookAgain) -> bool:
        return is_still(effect.target)

    def _with_thread(self, request: Request, target: SignalTarget) -> SignalTarget:
        thread = request.holdings.call.thread
        if not thread:
            return target
        tid = self._targets.our_number(request.process, thread)
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
