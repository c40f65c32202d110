"""The edge of the signal mediator: a request's facts in, its effects carried out."""

from __future__ import annotations

import errno
import time

from sigwrap.errors import KernelError
from sigwrap.linux.seccomp import Notification
from sigwrap.linux.signals.aim import Aims
from sigwrap.linux.signals.call import SignalCall
from sigwrap.linux.signals.send import is_still, send, set_owner
from sigwrap.linux.signals.targets import Targets, refresh_comm
from sigwrap.mediate.effects import LookAgain, Send, SetOwner, SignalTarget
from sigwrap.mediate.lineage import Process
from sigwrap.mediate.signal import SignalFacts, SignalMediator
from sigwrap.policy.judge.engine import Engine
from sigwrap.run.perform import NoHoldings, Performer, Scope
from sigwrap.run.processes import Processes
from sigwrap.run.recording.recordings import Recordings


class _SignalHoldings(NoHoldings):
    __slots__ = ("call",)

    def __init__(self, call: SignalCall) -> None:
        self.call = call


class Signals:
    def __init__(
        self,
        *,
        performer: Performer,
        engine: Engine,
        processes: Processes,
        recordings: Recordings,
        sigwrap_pids: frozenset[int],
        domain: bool,
    ) -> None:
        self._performer = performer
        self._mediator = SignalMediator(engine, domain=domain)
        self._targets = Targets(processes, sigwrap_pids)
        self._aims = Aims(self._targets)
        self._recordings = recordings
        performer.offer({Send: self._send, SetOwner: self._set_owner, LookAgain: self._look_again})

    def begin(self, notification: Notification, sender: Process, syscall: str) -> None:
        """Raises UnknownUse."""
        started_ns = time.perf_counter_ns()
        refresh_comm(sender)
        call, aim = self._aims.look(notification, sender, syscall)
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
        self._performer.demand_event(scope, effect, effect.unrecorded)
        self._performer.check(scope)
        call = scope.holdings.call
        try:
            target = self._with_thread(scope, effect.target)
            send(scope.tid, scope.process, call, target, effect.signal)
        except (KernelError, OSError) as refusal:
            return refusal.errno or errno.EPERM
        return 0

    def _set_owner(self, scope: Scope, effect: SetOwner) -> int:
        self._performer.demand_event(scope, effect, effect.unrecorded)
        self._performer.check(scope)
        try:
            target = None if effect.target is None else self._with_thread(scope, effect.target)
            set_owner(scope.tid, scope.process, scope.holdings.call, target)
        except (KernelError, OSError) as refusal:
            return refusal.errno or errno.EPERM
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
