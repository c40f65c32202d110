"""The handler of forks, which limits new processes, under a policy with `limits.at_fork`."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable

from sigwrap.approve.requests import denial
from sigwrap.bare import TYPE_CHECKING, NamedTuple
from sigwrap.calls import CLONE_PARENT
from sigwrap.kernel import process as linux_process
from sigwrap.kernel import procfs
from sigwrap.kernel.seccomp import Notification
from sigwrap.session.effects import (
    ContinueFork,
    Fail,
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
_REFUSALS_COUNTED_FOR_S = 60.0
_REST = 10  # a count that took 5 ms and found no room is not repeated for 50 ms


class Headcount:
    """An upper bound on a number of processes, which avoids most counts. It rises by what is added,
    and falls at the next count, when there seems to be no room left."""

    def __init__(self, already: int = 0) -> None:
        self.at_most = already
        self._rests_until_s = 0.0

    def has_room(self, maximum: int, count: Callable[[], int]) -> bool:
        started_s = time.monotonic()
        if self.at_most >= maximum and started_s >= self._rests_until_s:
            self.at_most = count()
            if self.at_most >= maximum:
                ended_s = time.monotonic()
                self._rests_until_s = ended_s + _REST * (ended_s - started_s)
        return self.at_most < maximum


class _Pending(NamedTuple):
    """A fork that was allowed to go on. The child counts until the thread is back or gone."""

    parent: Process
    answered_s: float


class Forks:
    def __init__(self, session: Session, mediation: Mediation) -> None:
        self._performer = mediation.performer
        self._restarts = mediation.restarts
        self._limits = session.policy.limits
        self._policy = session.policy.name
        self._tree = Headcount(1)  # counts the command already
        self._run_ends = False
        self._pending: dict[int, _Pending] = {}  # by the thread that forks
        self._next_cleanup_at = _KEPT
        self._performer.offer({ContinueFork: self._continue_fork})

    def stop(self) -> None:
        """Refuse every fork from now on: sigwrap is killing the tree."""
        self._run_ends = True

    def begin(self, notification: Notification, process: Process, syscall: str) -> None:
        self._pending.pop(notification.tid, None)  # the thread is back from its last fork
        refresh_comm(process)
        makes_sibling = syscall == "clone" and bool(notification.argument0 & CLONE_PARENT)
        steps = self.mediate(process, syscall, makes_sibling=makes_sibling)
        self._performer.begin(Request(notification, process, syscall, steps))

    def mediate(self, process: Process, syscall: str, *, makes_sibling: bool) -> Steps:
        """Let a fork go on, or refuse it. `makes_sibling`: its parent will be the caller's."""
        if self._run_ends:
            yield Fail(errno.EAGAIN, Unrecorded.NOTHING_HAPPENS)
            return
        parent = process.parent if makes_sibling and process.parent is not None else process
        limit = self._limit_reached(process, parent)
        if limit:
            yield from self._refuse(process, syscall, limit)
            return
        self._tree.at_most += 1
        if parent.children is not None:
            parent.children.at_most += 1
        yield ContinueFork(parent)

    def _limit_reached(self, process: Process, parent: Process) -> str:
        limits = self._limits
        # The fork of the last one was allowed, so that its exec gets a denial with a reason.
        if limits.max_depth and process.depth > limits.max_depth:
            return "max_depth"
        if limits.max_children:
            parent.children = parent.children or Headcount()
            if not parent.children.has_room(limits.max_children, lambda: self._children(parent)):
                return "max_children"
        if limits.max_processes and not self._tree.has_room(limits.max_processes, self._processes):
            return "max_processes"
        return ""

    def _refuse(self, process: Process, syscall: str, limit: str) -> Steps:
        maximum = getattr(self._limits, limit)
        payload = {
            "limit": limit,
            "maximum": maximum,
            "effect": "refused",
            "comm": process.comm,
            "depth": process.depth,
            "syscall": syscall,
        }
        logged: Logged = yield RecordRepeated(
            "limit_exceeded", payload, ("fork", limit), _REFUSALS_COUNTED_FOR_S
        )
        if logged is not Logged.COUNTED:
            why = f"no new process: {limit} is {maximum}"
            yield Tell(denial(process.comm, f"limits.{limit}", self._policy, why))
        yield Fail(errno.EAGAIN)

    def _continue_fork(self, request: Request, effect: ContinueFork) -> None:
        if len(self._pending) >= self._next_cleanup_at:
            self._forget_arrived()
            self._next_cleanup_at = 2 * len(self._pending) + _KEPT
        self._pending[request.tid] = _Pending(effect.parent, time.monotonic())
        self._restarts.expects_ends(request.process.pid)
        self._performer.continue_call(request, effect, Unrecorded.NO_RULE)

    def _children(self, parent: Process) -> int:
        self._forget_arrived()
        pending = sum(each.parent is parent for each in self._pending.values())
        return len(linux_process.children(parent.pid)) + pending

    def _processes(self) -> int:
        self._forget_arrived()
        return linux_process.count_descendants(os.getpid()) + len(self._pending)

    def _forget_arrived(self) -> None:
        latest_s = time.monotonic() - _FORKS_WITHIN_S
        self._pending = {
            tid: fork
            for tid, fork in self._pending.items()
            if fork.answered_s > latest_s and procfs.exists(f"/proc/{tid}")
        }
