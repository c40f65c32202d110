"""Every process that is about to be made, under a policy with `limits.at_fork`.

The filter tells of fork, vfork and those clone calls that make no thread, and refuses clone3 (its
flags could be changed behind our back). All that is asked is in registers, so a call goes on in the
kernel, or fails with EAGAIN as it does at the kernel's own limit on processes.

Mostly a birth costs a notification and an addition to a Headcount. The processes themselves,
zombies and all, are counted only when that bound says that there is no room. No birth is answered
during a count, so nothing can hide from it by forking; what was let go on and may not have come to
its fork yet counts as one.
"""

from __future__ import annotations

import errno
import os
import time
from typing import NamedTuple

from sigwrap.events import Payload
from sigwrap.linux import caller_stderr
from sigwrap.linux import process as kernel_process
from sigwrap.linux.seccomp import Listener, Request
from sigwrap.linux.syscalls import CLONE_PARENT, NAMES
from sigwrap.mediate.headcount import Headcount
from sigwrap.mediate.lineage import Process
from sigwrap.policy.judge.rules import Limits
from sigwrap.run.loop import Loop
from sigwrap.run.recorder import Recorder
from sigwrap.run.signals.targets import refresh_comm

_SUMMED_UP_AFTER_S = 60.0
_KEPT = 256
_ON_ITS_WAY_S = 1.0  # from our answer to the fork itself, on a busy machine


class _Birth(NamedTuple):
    """Let go on; until its thread is back or gone, it may be still to come."""

    parent: Process
    answered_s: float


class _Excess:
    """Of one limit: the first refusal is an event, the others of its minute are another one."""

    __slots__ = ("further", "payload", "pid")

    def __init__(self, pid: int, payload: Payload) -> None:
        self.pid = pid
        self.payload = payload
        self.further = 0


class BirthGate:
    def __init__(
        self, *, listener: Listener, recorder: Recorder, limits: Limits, loop: Loop
    ) -> None:
        self._listener = listener
        self._recorder = recorder
        self._limits = limits
        self._loop = loop
        self._everybody = Headcount(1)  # COMMAND
        self._on_their_way: dict[int, _Birth] = {}  # by the thread that forks
        self._looked_through_at = _KEPT
        self._excesses: dict[str, _Excess] = {}
        self._is_over = False

    def answer(self, request: Request, process: Process) -> None:
        self._on_their_way.pop(request.tid, None)  # it is back
        if self._is_granted(request, process):
            self._listener.resume(request.id)
        else:
            self._listener.fail(request.id, errno.EAGAIN)

    def stop(self) -> None:
        """From here on the tree may only shrink."""
        self._is_over = True

    def close(self) -> None:
        for limit in tuple(self._excesses):
            self._sum_up(limit)

    def _is_granted(self, request: Request, process: Process) -> bool:
        if self._is_over:
            return False
        limits = self._limits
        if limits.max_depth and process.depth > limits.max_depth:
            # Its own parent was allowed to make it so that it can be told so when it execs.
            self._refused(request, process, "max_depth", limits.max_depth)
            return False
        parent = process
        if process.parent is not None and _makes_a_sibling(request):
            parent = process.parent
        if limits.max_children:
            if parent.children is None:
                parent.children = Headcount()
            if not parent.children.admits(
                limits.max_children, lambda: self._count_children(parent), time.monotonic
            ):
                self._refused(request, process, "max_children", limits.max_children)
                return False
        if limits.max_processes and not self._everybody.admits(
            limits.max_processes, self._count_all, time.monotonic
        ):
            self._refused(request, process, "max_processes", limits.max_processes)
            return False
        if len(self._on_their_way) >= self._looked_through_at:
            self._forget_arrived()
            self._looked_through_at = 2 * len(self._on_their_way) + _KEPT
        self._on_their_way[request.tid] = _Birth(parent, time.monotonic())
        return True

    def _count_children(self, parent: Process) -> int:
        self._forget_arrived()
        coming = sum(birth.parent is parent for birth in self._on_their_way.values())
        return len(kernel_process.children(parent.pid)) + coming

    def _count_all(self) -> int:
        self._forget_arrived()
        return kernel_process.count_descendants(os.getpid()) + len(self._on_their_way)

    def _forget_arrived(self) -> None:
        latest_s = time.monotonic() - _ON_ITS_WAY_S
        self._on_their_way = {
            tid: birth
            for tid, birth in self._on_their_way.items()
            if birth.answered_s > latest_s and os.path.exists(f"/proc/{tid}")
        }

    # Refusals

    def _refused(self, request: Request, process: Process, limit: str, maximum: int) -> None:
        excess = self._excesses.get(limit)
        if excess is not None:
            excess.further += 1
            return
        refresh_comm(process)
        payload = {
            "limit": limit,
            "maximum": maximum,
            "effect": "refused",
            "comm": process.comm,
            "depth": process.depth,
            "syscall": NAMES[request.arch][request.number],
        }
        self._excesses[limit] = _Excess(process.pid, payload)
        self._recorder.record("limit_exceeded", process.pid, payload)
        self._loop.call_at(time.monotonic() + _SUMMED_UP_AFTER_S, lambda: self._sum_up(limit))
        text = f"sigwrap: {process.comm}: no new process: {limit} is {maximum}"
        caller_stderr.tell(process.pid, text)

    def _sum_up(self, limit: str) -> None:
        excess = self._excesses.pop(limit, None)
        if excess is not None and excess.further:
            payload = {**excess.payload, "count": excess.further}
            self._recorder.record("limit_exceeded", excess.pid, payload)


def _makes_a_sibling(request: Request) -> bool:
    return NAMES[request.arch][request.number] == "clone" and bool(request.argument0 & CLONE_PARENT)
