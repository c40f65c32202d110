"""The handler of forks, and their mediator, which limits new processes (`limits.at_fork`)."""

from __future__ import annotations

import errno
import os
import time

from sigwrap.approve.requests import denial
from sigwrap.bare import TYPE_CHECKING, NamedTuple
from sigwrap.calls import CLONE_PARENT
from sigwrap.kernel import process as linux_process
from sigwrap.kernel import procfs
from sigwrap.kernel.seccomp import Notification
from sigwrap.policy.judge.rules import Limits
from sigwrap.session.effects import (
    ContinueFork,
    CountChildren,
    Counted,
    CountTree,
    Fail,
    Judgement,
    Logged,
    RecordRepeated,
    Steps,
    Tell,
    Unrecorded,
)
from sigwrap.session.lineage import Process
from sigwrap.session.perform import Request
from sigwrap.session.processes import refresh_comm

if TYPE_CHECKING:
    from sigwrap.session.mediation import Mediation
    from sigwrap.session.session import Session

_KEPT = 256
_FORKS_WITHIN_S = 1.0  # from the answer to the fork, on a busy machine


class _Pending(NamedTuple):
    """A fork that was allowed to go on. The child counts until the thread is back or gone."""

    parent: Process
    answered_s: float


class Forks:
    """The handler of forks."""

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
        self._performer.begin(Request(notification, process, syscall, steps))

    def _continue_fork(self, request: Request, effect: ContinueFork) -> None:
        if len(self._pending) >= self._next_cleanup_at:
            self._forget_arrived()
            self._next_cleanup_at = 2 * len(self._pending) + _KEPT
        self._pending[request.tid] = _Pending(effect.parent, time.monotonic())
        self._restarts.expects_ends(request.process.pid)
        self._performer.continue_call(request, effect, Unrecorded.NO_RULE)

    def _count_children(self, _request: Request, effect: CountChildren) -> Counted:
        started_s = time.monotonic()
        self._forget_arrived()
        pending = sum(each.parent is effect.parent for each in self._pending.values())
        number = len(linux_process.children(effect.parent.pid)) + pending
        return Counted(number, started_s, time.monotonic())

    def _count_tree(self, _request: Request, _effect: CountTree) -> Counted:
        started_s = time.monotonic()
        self._forget_arrived()
        number = linux_process.count_descendants(os.getpid()) + len(self._pending)
        return Counted(number, started_s, time.monotonic())

    def _forget_arrived(self) -> None:
        latest_s = time.monotonic() - _FORKS_WITHIN_S
        self._pending = {
            tid: fork
            for tid, fork in self._pending.items()
            if fork.answered_s > latest_s and procfs.exists(f"/proc/{tid}")
        }


# The mediator: limit new processes, under a policy with `limits.at_fork`. Pure.

_COUNTED_FOR_S = 60.0
_REST = 10  # a count that took 5 ms and found no room is not repeated for 50 ms


class Headcount:
    """An upper bound on a number of processes, which avoids most counts. It rises by what is added,
    and falls at the next count, when there seems to be no room left."""

    def __init__(self, already: int = 0) -> None:
        self.at_most = already
        self._rests_until_s = 0.0

    def is_worth_a_count(self, now_s: float) -> bool:
        return now_s >= self._rests_until_s

    def counted(self, found: Counted, maximum: int) -> None:
        self.at_most = found.number
        if found.number >= maximum:
            self._rests_until_s = found.ended_s + _REST * (found.ended_s - found.started_s)


class ForkFacts(NamedTuple):
    process: Process
    syscall: str
    makes_sibling: bool  # CLONE_PARENT: the caller's parent becomes the parent
    now_s: float


class ForkMediator:
    def __init__(self, limits: Limits, policy: str) -> None:
        self._limits = limits
        self._policy = policy
        self._tree = Headcount(1)  # counts the command already
        self._run_ends = False

    def stop(self) -> None:
        """Refuse every fork from now on: sigwrap is killing the tree."""
        self._run_ends = True

    def mediate(self, facts: ForkFacts) -> Steps:
        if self._run_ends:
            yield Fail(errno.EAGAIN, Unrecorded.NOTHING_HAPPENS)
            return
        limits = self._limits
        process = facts.process
        if limits.max_depth and process.depth > limits.max_depth:
            # Its own fork was allowed, so that its exec gets a denial with a reason.
            yield from self._refuse(facts, "max_depth", limits.max_depth)
            return
        parent = process
        if facts.makes_sibling and process.parent is not None:
            parent = process.parent
        if limits.max_children:
            if parent.children is None:
                parent.children = Headcount()
            if not (yield from _has_room(facts, parent.children, limits.max_children, parent)):
                yield from self._refuse(facts, "max_children", limits.max_children)
                return
        if limits.max_processes:
            if not (yield from _has_room(facts, self._tree, limits.max_processes, None)):
                yield from self._refuse(facts, "max_processes", limits.max_processes)
                return
            self._tree.at_most += 1
        if parent.children is not None:
            parent.children.at_most += 1
        yield ContinueFork(parent)

    def _refuse(self, facts: ForkFacts, limit: str, maximum: int) -> Steps:
        process = facts.process
        payload = {
            "limit": limit,
            "maximum": maximum,
            "effect": "refused",
            "comm": process.comm,
            "depth": process.depth,
            "syscall": facts.syscall,
        }
        logged: Logged = yield RecordRepeated(
            "limit_exceeded", payload, ("fork", limit), _COUNTED_FOR_S
        )
        if logged is not Logged.COUNTED:
            why = f"no new process: {limit} is {maximum}"
            yield Tell(denial(process.comm, f"limits.{limit}", self._policy, why))
        yield Fail(errno.EAGAIN)


def _has_room(
    facts: ForkFacts, headcount: Headcount, maximum: int, parent: Process | None
) -> Judgement:
    """Return whether one more fits. `parent`: count its children; None: the whole tree."""
    if headcount.at_most >= maximum and headcount.is_worth_a_count(facts.now_s):
        found: Counted = yield CountTree() if parent is None else CountChildren(parent)
        headcount.counted(found, maximum)
    return headcount.at_most < maximum
