"""Limits new processes, under a policy with `limits.at_fork`.

The call's arguments are in registers, so the kernel can continue it. Over a limit it fails with
EAGAIN, as at the kernel's own limit on processes. Most forks only add to a Headcount. The
processes, zombies included, are counted only when that bound leaves no room. Sigwrap answers no
fork during a count, so no process can escape the count by forking.
"""

from __future__ import annotations

import errno

from sigwrap.bare import NamedTuple
from sigwrap.mediate.effects import (
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
from sigwrap.mediate.headcount import Headcount
from sigwrap.mediate.lineage import Process
from sigwrap.mediate.wording import denial
from sigwrap.policy.judge.rules import Limits

_COUNTED_FOR_S = 60.0


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
            self._tree.add()
        if parent.children is not None:
            parent.children.add()
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
    if not headcount.has_room(maximum) and headcount.is_worth_a_count(facts.now_s):
        found: Counted = yield CountTree() if parent is None else CountChildren(parent)
        headcount.counted(found.number, maximum, started_s=found.started_s, ended_s=found.ended_s)
    return headcount.has_room(maximum)
