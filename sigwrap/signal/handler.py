"""Gather the facts of a signal for its mediator, and carry out the effects of signals alone."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable

from sigwrap.bare import TYPE_CHECKING, NamedTuple
from sigwrap.errors import KernelError
from sigwrap.kernel import signals, terminals
from sigwrap.kernel.descriptors import duplicate, let_go
from sigwrap.kernel.seccomp import Notification, int32
from sigwrap.policy.judge.request import TargetType
from sigwrap.policy.judge.signals import ALL
from sigwrap.session.effects import (
    ChangeDescriptor,
    ContinueToChildren,
    LetGo,
    LookAgain,
    Send,
    SignalTarget,
)
from sigwrap.session.lineage import Process
from sigwrap.session.loop import Done, Lane, Outcome, Raised
from sigwrap.session.perform import PAUSED, NoHoldings, Request
from sigwrap.session.processes import refresh_comm
from sigwrap.session.recorder import EncodedEvent, encoded
from sigwrap.signal import owners
from sigwrap.signal.call import is_still, may_change, read_words, send
from sigwrap.signal.facts import (
    IGNORED_BY_DEFAULT,
    NO_CALL,
    UNREAD,
    CallKind,
    RefusedCall,
    SignalCall,
    SignalFacts,
)
from sigwrap.signal.judge import SignalMediator, differs
from sigwrap.signal.targets import Targets

if TYPE_CHECKING:
    from sigwrap.session.mediation import Mediation
    from sigwrap.session.session import Session

_LOOK_AGAIN_S = 0.005
_SETTLED_KEPT = 256


class _SignalHoldings(NoHoldings):
    def __init__(self) -> None:
        self.call = NO_CALL

    def give_up(self) -> int:
        """Return the held descriptor for the receiver to close."""
        held, self.call = self.call.held, self.call._replace(held=-1)
        return held

    def close(self) -> None:
        if self.call.held >= 0:
            let_go(self.give_up())


class _Settled(NamedTuple):
    """What is done about all signals with the same facts: they go on."""

    event: EncodedEvent | None  # None if their rule is unlogged
    is_to_child: bool


class Signals:
    """The handler of signals."""

    def __init__(self, session: Session, mediation: Mediation) -> None:
        self._performer = performer = mediation.performer
        self._mediator = SignalMediator(session.engine, domain=session.facts.sandbox.domain)
        self._targets = Targets(session)
        self._recordings = mediation.recordings.running
        self._restarts = mediation.restarts
        self._pool = session.pool
        self._processes = session.processes
        self._settled: dict[tuple[object, ...], _Settled | None] = {}
        performer.offer(
            {
                ContinueToChildren: self._continue_to_children,
                Send: self._send,
                ChangeDescriptor: self._change_descriptor,
                LetGo: self._let_go,
                LookAgain: lambda _request, effect: is_still(effect.target),
            }
        )

    def begin(self, notification: Notification, sender: Process, syscall: str) -> None:
        if syscall == "kill" and self._goes_on(notification, sender):
            return
        steps = self._mediator.mediate()
        held = _SignalHoldings()
        self._performer.begin(
            Request(notification, sender, syscall, steps, handler=self, holdings=held)
        )

    def _goes_on(self, notification: Notification, sender: Process) -> bool:
        """Let a signal go on without a mediator of its own, if all signals with its facts go on.

        Signal 0 goes on as well. Return False for a signal that needs a mediator.
        """
        started_ns = time.perf_counter_ns()
        target = self._targets.known_inside(sender, int32(notification.argument0))
        if target is None:
            return False
        number, performer = int32(notification.argument1), self._performer
        if number == 0:  # Landlock lets signal 0 through
            performer.leave_to_the_kernel(notification.id)
            return True
        if sender in self._recordings or not performer.grants:
            return False
        refresh_comm(sender)
        refresh_comm(target)
        # An exec changes names and families. The parents of a living process stay the same.
        command = self._processes.command
        families = sender.family, target.family, command and command.family
        key = (number, sender, target, sender.comm, target.comm, families)
        if key not in self._settled:
            if len(self._settled) >= _SETTLED_KEPT:
                self._settled.clear()
            self._settled[key] = self._settle(sender, number, target.pid)
        settled = self._settled[key]
        if settled is None:
            return False
        event = settled.event
        if event and not performer.record_again(notification.id, sender.pid, event, started_ns):
            return True
        if settled.is_to_child:
            self._restarts.expects_ends(sender.pid)
        performer.leave_to_the_kernel(notification.id)
        return True

    def _settle(self, sender: Process, number: int, pid: int) -> _Settled | None:
        """Judge all signals with these facts at once; return None if that is not possible."""
        target = self._targets.of_pid(sender, pid)
        if target is None or number not in ALL:
            return None
        facts = SignalFacts(sender, "kill", number, CallKind.NUMBER, target, 0, (), differs)
        settled = self._mediator.settle(facts)
        if settled is None:
            return None
        record, answer = settled
        event = record and encoded(record.event, record.payload)
        is_to_child = isinstance(answer, ContinueToChildren)
        return None if record and not event else _Settled(event, is_to_child)

    def look(self, request: Request, *, may_wait: bool) -> bytes | None:
        """Return the memory that the call points to."""
        return read_words(request.notification, request.syscall, may_wait=may_wait)

    def facts(self, request: Request, words: bytes | None) -> SignalFacts:
        notification, sender, syscall = request.notification, request.process, request.syscall
        refresh_comm(sender)
        call, aim = self._targets.resolve(notification, sender, syscall, words)
        request.holdings.call = call
        recording = self._recordings.get(sender)
        return SignalFacts(
            sender,
            syscall,
            call.signal,
            call.kind,
            aim,
            notification.id,
            # A stub passes signals on to its command, and ends as the command did.
            () if recording is None else (sender.pid, recording.command.pid),
            signals.catches_or_ignores,
            changes_its_shell=(
                call.kind is CallKind.CHANGE
                and isinstance(aim, SignalTarget)
                and may_change(sender, call, aim)
            ),
        )

    def stalled(self, request: Request, _why: str) -> SignalFacts:
        return self.facts(request, None)._replace(aim=RefusedCall(UNREAD))

    def drop(self, words: bytes | None) -> None:
        pass

    # Effects

    def _continue_to_children(self, request: Request, effect: ContinueToChildren) -> None:
        self._restarts.expects_ends(request.process.pid)
        self._performer.continue_call(request, effect, effect.unrecorded)

    def _send(self, request: Request, effect: Send) -> int:
        self._performer.demand_event(request, effect, effect.unrecorded)
        self._performer.check(request)
        try:
            target = self._with_thread(request, effect.target)
            if TargetType.CHILDREN in target.types and effect.signal not in IGNORED_BY_DEFAULT:
                self._restarts.expects_ends(request.process.pid)
            send(request.process, request.holdings.call, target, effect.signal)
        except (KernelError, OSError) as refusal:
            return refusal.errno or errno.EPERM
        return 0

    def _change_descriptor(self, request: Request, effect: ChangeDescriptor) -> object:
        self._performer.demand_event(request, effect, effect.unrecorded)
        self._performer.check(request)
        sender, call, target = request.process, request.holdings.call, effect.target
        try:
            if call.kind is CallKind.FOREGROUND:
                os.tcsetpgrp(terminals.controlling, -call.target)
                return 0
            if call.held < 0:
                target = target and self._with_thread(request, target)
                if call.target < 0:
                    group = self._targets.our_group(sender, -call.target)
                    if group is None:
                        raise ProcessLookupError(errno.ESRCH, "no such group")
                    call = call._replace(target=-group)
                request.holdings.call = call._replace(held=duplicate(request.tid, call.descriptor))
        except (KernelError, OSError) as refusal:
            return refusal.errno or errno.EPERM
        return self._in_worker(request, lambda call: owners.change(sender, call, target))

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
