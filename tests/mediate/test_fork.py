"""Forks as transcripts: within the limits a fork is free, beyond them it fails as the kernel would
let it."""

from __future__ import annotations

import errno
from typing import Any

from sigwrap.approve.requests import denial
from sigwrap.control.forks import ForkFacts, ForkMediator
from sigwrap.policy.judge.rules import Limits
from sigwrap.session.effects import (
    ContinueFork,
    CountChildren,
    Counted,
    CountTree,
    Fail,
    Logged,
    Tell,
    Unrecorded,
)
from sigwrap.session.lineage import Process
from tests.mediate.transcript import Transcript, play


def told(limit: str, maximum: int) -> Tell:
    return Tell(denial("make", f"limits.{limit}", "x", f"no new process: {limit} is {maximum}"))


def process(pid: int, parent: Process | None = None, depth: int = 1) -> Process:
    return Process(pid=pid, start_time=1, parent=parent, ppid=30, depth=depth, comm="make")


class Tree:
    def __init__(self, **limits: Any) -> None:
        self.mediator = ForkMediator(Limits(at_fork=True, **limits), "x")
        self.now_s = 100.0

    def forks(self, who: Process, *, syscall: str = "clone", sibling: bool = False) -> Transcript:
        return play(self.mediator.mediate(ForkFacts(who, syscall, sibling, self.now_s)))

    def found(self, number: int) -> Counted:
        """A count takes a second."""
        started_s = self.now_s
        self.now_s += 1
        return Counted(number, started_s, self.now_s)


REFUSED = Fail(errno.EAGAIN)


def test_processes_are_counted_only_when_the_bound_says_there_is_no_room() -> None:
    tree, make = Tree(max_processes=3, max_children=9), process(40)
    tree.forks(make).yields(ContinueFork(make)).ends()
    tree.forks(make).yields(ContinueFork(make)).ends()
    tree, make = Tree(max_processes=2), process(40)
    tree.forks(make).yields(ContinueFork(make)).ends()
    tree.forks(make).yields(CountTree(), reply=tree.found(1)).yields(ContinueFork(make)).ends()


def test_one_process_too_many_fails_and_is_an_event() -> None:
    tree, make = Tree(max_processes=2), process(40)
    tree.forks(make).next()
    transcript = tree.forks(make, syscall="vfork").yields(CountTree(), reply=tree.found(2))
    transcript.counts("limit_exceeded", ("fork", "max_processes"), 60.0)
    transcript.yields(told("max_processes", 2), REFUSED).ends()
    assert transcript.payload == {
        "limit": "max_processes",
        "maximum": 2,
        "effect": "refused",
        "comm": "make",
        "depth": 1,
        "syscall": "vfork",
    }


def test_only_the_first_refusal_is_told_and_one_that_cannot_be_recorded() -> None:
    tree, make = Tree(max_processes=1), process(40)
    tree.forks(make).yields(CountTree(), reply=tree.found(1)).counts(
        "limit_exceeded", ("fork", "max_processes"), 60.0, reply=Logged.COUNTED
    ).yields(REFUSED).ends()
    tree, make = Tree(max_processes=1), process(40)
    tree.forks(make).yields(CountTree(), reply=tree.found(1)).counts(
        "limit_exceeded", ("fork", "max_processes"), 60.0, reply=Logged.FAILED
    ).yields(told("max_processes", 1), REFUSED).ends()


def test_a_count_in_vain_is_not_repeated_for_ten_times_as_long_as_it_took() -> None:
    tree, make = Tree(max_processes=1), process(40)
    tree.forks(make).yields(CountTree(), reply=tree.found(1)).counts(
        "limit_exceeded", ("fork", "max_processes"), 60.0
    )
    tree.now_s += 9
    tree.forks(make).counts("limit_exceeded", ("fork", "max_processes"), 60.0)
    tree.now_s += 1
    tree.forks(make).yields(CountTree(), reply=tree.found(0)).yields(ContinueFork(make)).ends()


def test_children_are_counted_for_their_own_parent() -> None:
    tree, make, other = Tree(max_children=1), process(40), process(41)
    tree.forks(make).yields(ContinueFork(make)).ends()
    tree.forks(other).yields(ContinueFork(other)).ends()
    tree.forks(make).yields(CountChildren(make), reply=tree.found(1)).counts(
        "limit_exceeded", ("fork", "max_children"), 60.0, maximum=1
    ).yields(told("max_children", 1), REFUSED).ends()


def test_a_sibling_is_a_child_of_the_callers_parent() -> None:
    tree, make = Tree(max_children=1), process(40)
    child = process(41, parent=make, depth=2)
    tree.forks(child, sibling=True).yields(ContinueFork(make)).ends()
    tree.forks(make).yields(CountChildren(make), reply=tree.found(1)).counts(
        "limit_exceeded", ("fork", "max_children"), 60.0
    )
    tree.now_s += 100
    tree.forks(make, sibling=True).yields(CountChildren(make), reply=tree.found(0)).yields(
        ContinueFork(make)
    ).ends()


def test_a_fork_that_one_limit_refuses_takes_no_room_from_the_other() -> None:
    tree, make, other = Tree(max_children=5, max_processes=1), process(40), process(41)
    for _ in range(9):
        tree.forks(make).next(tree.found(1))
        tree.now_s += 100
    assert make.children is not None and make.children.at_most == 0
    tree.forks(other).yields(CountTree(), reply=tree.found(0)).yields(ContinueFork(other)).ends()


def test_a_process_beyond_the_depth_makes_none() -> None:
    tree = Tree(max_depth=2)
    at_the_limit, beyond = process(40, depth=2), process(41, depth=3)
    tree.forks(at_the_limit).yields(ContinueFork(at_the_limit)).ends()
    tree.forks(beyond).counts(
        "limit_exceeded", ("fork", "max_depth"), 60.0, depth=3, maximum=2
    ).yields(told("max_depth", 2), REFUSED).ends()


def test_no_process_is_made_once_the_tree_is_being_killed() -> None:
    tree = Tree(max_processes=9)
    tree.mediator.stop()
    tree.forks(process(40)).fails(errno.EAGAIN, Unrecorded.NOTHING_HAPPENS)
