"""The edge of the signal mediator: a request's facts in, its effects carried out."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable

from sigwrap.errors import KernelError
from sigwrap.linux.seccomp import Listener, Notification
from sigwrap.linux.signals.aim import Aims
from sigwrap.linux.signals.call import SignalCall
from sigwrap.linux.signals.owners import set_async
from sigwrap.linux.signals.send import is_still, send, set_owner
from sigwrap.linux.signals.take import take_descriptor
from sigwrap.linux.signals.targets import Targets, refresh_comm
from sigwrap.mediate.effects import (
    LookAgain,
    Send,
    SetAsync,
    SetForeground,
    SetOwner,
    SignalTarget,
    TakeDescriptor,
)
from sigwrap.mediate.lineage import Process
from sigwrap.mediate.signal import SignalMediator
from sigwrap.mediate.signal_facts import How, SignalFacts
from sigwrap.policy.judge.engine import Engine
from sigwrap.run.perform import NoHoldings, Performer, Scope
from sigwrap.run.processes import Processes
from sigwrap.run.recording.recordings import Recordings


class _SignalHoldings(NoHoldings):
    __slots__ = ("call",)

    def __init__(self, call: SignalCall) -> None:
        self.call = call

    def close(self) -> None:
        held, self.call = self.call.held, self.call._replace(held=-1)
        if held >= 0:
            os.close(held)


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
        domain: bool,
    ) -> None:
        self._performer = performer
        self._listener = listener
        self._mediator = SignalMediator(engine, domain=domain)
        self._targets = Targets(processes, sigwrap_pids)
        self._aims = Aims(self._targets)
        self._recordings = recordings
        performer.offer(
            {
                Send: self._send,
                SetOwner: self._set_owner,
                SetAsync: self._set_async,
                SetForeground: self._set_foreground,
                TakeDescriptor: self._take_descriptor,
                LookAgain: self._look_again,
            }
        )

    def begin(self, notification: Notification, sender: Process, syscall: str) -> None:
        """Raises UnknownUse."""
        started_ns = time.perf_counter_ns()
        refresh_comm(sender)
        call, aim = self._aims.look(notification, sender, syscall)
        sender.seizes |= call.seizes and call.how is How.TRACE
        own_targets = self._recordings.own_targets(sender)
        facts = SignalFacts(
            sender, syscall, call.signal, call.how, aim, notification.id, own_targets
        )
        steps = self._mediator.mediate(facts)
        held = _SignalHoldings(call)
        self._performer.begin(
            Scope(notification.id, notification.tid, sender, steps, held, started_ns)
        )

    # Effects

    def _send(self, scope: Scope, effect: Send) -> int:
        def run(call: SignalCall) -> None:
            target = self._with_thread(scope, effect.target)
            send(scope.tid, scope.process, call, target, effect.signal)

        return self._carry_out(scope, effect, run)

    def _set_owner(self, scope: Scope, effect: SetOwner) -> int:
        def run(call: SignalCall) -> None:
            target = None if effect.target is None else self._with_thread(scope, effect.target)
            set_owner(scope.tid, scope.process, call, target)

        return self._carry_out(scope, effect, run)

    def _set_async(self, scope: Scope, effect: SetAsync) -> int:
        return self._carry_out(scope, effect, lambda call: set_async(scope.process, call))

    def _set_foreground(self, scope: Scope, effect: SetForeground) -> int:
        return self._carry_out(scope, effect, lambda call: os.tcsetpgrp(call.held, effect.group))

    def _take_descriptor(self, scope: Scope, effect: TakeDescriptor) -> int:
        def run(call: SignalCall) -> None:
            taken = take_descriptor(scope.process, call, effect.target)
            try:
                self._listener.answer_with_descriptor(scope.id, taken)
            finally:
                os.close(taken)
            self._performer.answered_with_descriptor(scope)

        return self._carry_out(scope, effect, run)

    def _carry_out(
        self,
        scope: Scope,
        effect: Send | SetOwner | SetAsync | SetForeground | TakeDescriptor,
        run: Callable[[SignalCall], None],
    ) -> int:
        self._performer.demand_event(scope, effect, effect.unrecorded)
        self._performer.check(scope)
        try:
            run(scope.holdings.call)
        except (KernelError, OSError) as refusal:
            return refusal.errno or errno.EPERM
        finally:
            scope.holdings.close()  # before the answer: the caller's own close must be the last
        return 0

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
