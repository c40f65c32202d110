"""The edge of the signal mediator: its facts are gathered here, and its effects carried out."""

from __future__ import annotations

import errno
import os
import time

from sigwrap.errors import KernelError
from sigwrap.linux import pidfd
from sigwrap.linux.seccomp import Notification
from sigwrap.linux.signals.call import (
    PIDFD_SELF_THREAD,
    PIDFD_SIGNAL_PROCESS_GROUP,
    PIDFD_SIGNAL_THREAD,
    CallRefused,
    NoTarget,
    SignalCall,
    read_call,
)
from sigwrap.linux.signals.send import is_still, send, set_owner
from sigwrap.linux.signals.targets import Targets, refresh_comm
from sigwrap.mediate.effects import LookAgain, Send, SetOwner, SignalTarget
from sigwrap.mediate.facts import WouldFail
from sigwrap.mediate.lineage import Process
from sigwrap.mediate.signal import (
    Aim,
    Everybody,
    Group,
    How,
    Nobody,
    NoOwner,
    One,
    SignalFacts,
    SignalMediator,
    Unresolved,
    WhoeverOwns,
)
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.signals import ALL
from sigwrap.run.perform import Performer, Scope
from sigwrap.run.processes import Processes
from sigwrap.run.recording.recordings import Recordings


class _SignalHands:
    """The decoded call; a signal holds nothing."""

    __slots__ = ("call",)

    def __init__(self, call: SignalCall) -> None:
        self.call = call

    def failed(self) -> None:
        pass

    def close(self) -> None:
        pass


class Signals:
    def __init__(
        self,
        *,
        performer: Performer,
        engine: Engine,
        processes: Processes,
        recordings: Recordings,
        sigwrap_pids: frozenset[int],
    ) -> None:
        self._performer = performer
        self._mediator = SignalMediator(engine)
        self._targets = Targets(processes, sigwrap_pids)
        self._recordings = recordings
        performer.offer({Send: self._send, SetOwner: self._set_owner, LookAgain: self._look_again})

    def begin(self, notification: Notification, sender: Process, syscall: str) -> None:
        """Raises UnknownUse."""
        started_ns = time.perf_counter_ns()
        refresh_comm(sender)
        call, aim = self._look(notification, sender, syscall)
        own_targets = self._recordings.own_targets(sender)
        facts = SignalFacts(
            sender, syscall, call.signal, call.how, aim, str(notification.id), own_targets
        )
        steps = self._mediator.mediate(facts)
        hands = _SignalHands(call)
        self._performer.begin(
            Scope(notification.id, notification.tid, sender, steps, hands, started_ns)
        )

    # Facts

    def _look(
        self, notification: Notification, sender: Process, syscall: str
    ) -> tuple[SignalCall, Aim]:
        try:
            call = read_call(notification, syscall)
        except NoTarget:
            return _undecoded(syscall), Nobody()
        except CallRefused as refusal:
            return _undecoded(syscall), WouldFail(refusal.errno)
        if call.signal not in ALL:
            return call, Nobody()  # a register too: the kernel says what it is
        match call.how:
            case How.PIDFD:
                return call, self._by_pidfd(notification, sender, call)
            case How.ITSELF:
                one = call.flags & PIDFD_SIGNAL_THREAD or (
                    not call.flags and call.target == PIDFD_SELF_THREAD
                )
                thread = notification.tid if one else 0
                return call, self._of_held(sender, call, sender.pid, thread)
            case How.SIGNAL_OF_OWNER:
                return call, WhoeverOwns()
            case How.NUMBER | How.OWNER | How.OWNER_IN_MEMORY | How.TRACE | How.LIMIT:
                return call, self._by_number(sender, call)

    def _by_number(self, sender: Process, call: SignalCall) -> Aim:
        if call.syscall == "kill" and call.target == -1:
            return Everybody()
        if call.target == 0 and call.how is How.OWNER_IN_MEMORY:
            return NoOwner()
        if call.target <= 0:
            return _group(self._targets.of_group(sender, -call.target))
        return _one(self._targets.of_number(sender, call.target))

    def _by_pidfd(self, notification: Notification, sender: Process, call: SignalCall) -> Aim:
        """What the descriptor stands for now gets the signal, whatever it is by then."""
        try:
            held = pidfd.duplicate(notification.tid, call.target)
        except (KernelError, OSError) as refusal:
            return WouldFail(errno.EBADF) if refusal.errno == errno.EBADF else Unresolved()
        try:
            pid = pidfd.target(held)
            of_thread = call.flags & PIDFD_SIGNAL_THREAD or (
                not call.flags and pidfd.is_of_thread(held)
            )
        finally:
            os.close(held)
        if pid is None:
            return Unresolved()
        if pid <= 0:
            return WouldFail(errno.ESRCH)
        return self._of_held(sender, call, pid, pid if of_thread else 0)

    def _of_held(self, sender: Process, call: SignalCall, pid: int, thread: int) -> Aim:
        """`pid` and `thread` are the supervisor's numbers."""
        if call.flags & PIDFD_SIGNAL_PROCESS_GROUP:
            return _group(self._targets.of_group_led_by(sender, pid))
        found = self._targets.of_pid(sender, pid)
        return _one(None if found is None else found._replace(thread=thread))

    # Effects

    def _send(self, scope: Scope, effect: Send) -> int:
        self._performer.demand_event(scope, effect, effect.unrecorded)
        self._performer.check(scope)
        call = scope.hands.call
        target = self._with_thread(scope, effect.target)
        try:
            send(scope.tid, scope.process, call, target, effect.signal)
        except (KernelError, OSError) as refusal:
            return refusal.errno or errno.EPERM
        return 0

    def _set_owner(self, scope: Scope, effect: SetOwner) -> int:
        self._performer.demand_event(scope, effect, effect.unrecorded)
        self._performer.check(scope)
        target = None if effect.target is None else self._with_thread(scope, effect.target)
        try:
            set_owner(scope.tid, scope.process, scope.hands.call, target)
        except (KernelError, OSError) as refusal:
            return refusal.errno or errno.EPERM
        return 0

    def _look_again(self, _scope: Scope, effect: LookAgain) -> bool:
        return is_still(effect.target)

    def _with_thread(self, scope: Scope, target: SignalTarget) -> SignalTarget:
        thread = scope.hands.call.thread
        if not thread:
            return target
        tid = self._targets.threads_number(scope.process, thread)
        return target._replace(thread=tid) if tid else target


def _one(target: SignalTarget | None) -> Aim:
    return WouldFail(errno.ESRCH) if target is None else One(target)


def _group(members: list[SignalTarget]) -> Aim:
    return Group(tuple(members)) if members else WouldFail(errno.ESRCH)


def _undecoded(syscall: str) -> SignalCall:
    return SignalCall(syscall, How.NUMBER, signal=0, target=0)
