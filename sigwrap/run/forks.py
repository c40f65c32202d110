"""Gather facts for the fork mediator, and carry out its effects."""

from __future__ import annotations

import os
import time

from sigwrap.bare import TYPE_CHECKING, NamedTuple
from sigwrap.calls import CLONE_PARENT
from sigwrap.linux import proc_files
from sigwrap.linux import process as linux_process
from sigwrap.linux.seccomp import Notification
from sigwrap.linux.signals.targets import refresh_comm
from sigwrap.mediate.effects import ContinueFork, CountChildren, Counted, CountTree, Unrecorded
from sigwrap.mediate.fork import ForkFacts, ForkMediator
from sigwrap.mediate.lineage import Process
from sigwrap.run.perform import Scope

if TYPE_CHECKING:
    from sigwrap.run.mediation import Mediation
    from sigwrap.run.session import Session

_KEPT = 256
_FORKS_WITHIN_S = 1.0  # from the answer to the fork, on a busy machine


class _Pending(NamedTuple):
    """A fork that was allowed to go on. The child counts until the thread is back or gone."""

    parent: Process
    answered_s: float


class Forks:
    def __init__(self, session: Session, mediation: Mediation) -> None:
        self._performer = performer = mediation.performer
        self._restarts = mediation.restarts
        self._mediator = ForkMediator(session.policy.limits, session.policy.name)
        self.stop = self._mediator.stop
        self._pending: dict[int, _Pending] = {}  # by the thread that forks
        self._next_cleanup_at = _KEPT
        performer.offer(
            {
                CountChildren: self._count_children,
                CountTree: self._count_tree,
                ContinueFork: self._continue_fork,
            }
        )

    def begin(self, notification: Notification, process: Process, syscall: str) -> None:
        self._pending.pop(notification.tid, None)  # the thread is back from its last fork
        refresh_comm(process)
        facts = ForkFacts(
            process=process,
            syscall=syscall,
            makes_sibling=syscall == "clone" and bool(notification.argument0 & CLONE_PARENT),
            now_s=time.monotonic(),
        )
        steps = self._mediator.mediate(facts)
        self._performer.begin(Scope(notification, process, syscall, steps))

    def _continue_fork(self, scope: Scope, effect: ContinueFork) -> None:
        if len(self._pending) >= self._next_cleanup_at:
            self._forget_arrived()
            self._next_cleanup_at = 2 * len(self._pending) + _KEPT
        self._pending[scope.tid] = _Pending(effect.parent, time.monotonic())
        self._restarts.expects_ends(scope.process.pid)
        self._performer.let_go_on(scope, effect, Unrecorded.FORK_IS_FREE)

    def _count_children(self, _scope: Scope, effect: CountChildren) -> Counted:
        started_s = time.monotonic()
        self._forget_arrived()
        pending = sum(each.parent is effect.parent for each in self._pending.values())
        number = len(linux_process.children(effect.parent.pid)) + pending
        return Counted(number, started_s, time.monotonic())

    def _count_tree(self, _scope: Scope, _effect: CountTree) -> Counted:
        started_s = time.monotonic()
        self._forget_arrived()
        number = linux_process.count_descendants(os.getpid()) + len(self._pending)
        return Counted(number, started_s, time.monotonic())

    def _forget_arrived(self) -> None:
        latest_s = time.monotonic() - _FORKS_WITHIN_S
        self._pending = {
            tid: fork
            for tid, fork in self._pending.items()
            if fork.answered_s > latest_s and proc_files.exists(f"/proc/{tid}")
        }
