"""Forks as transcripts: within the limits a fork is free, beyond them it fails as the kernel would
let it."""

from __future__ import annotations

import errno
from types import SimpleNamespace
from typing import Any

import pytest

from sigwrap.approve.requests import denial
from sigwrap.control import forks as module
from sigwrap.control.forks import Forks
from sigwrap.policy.judge.rules import Limits
from sigwrap.session.effects import ContinueFork, Fail, Logged, Tell, Unrecorded
from sigwrap.session.lineage import Process
from tests.mediate.transcript import Transcript, play
from tests.support.stand_in import Anything, session_of


def told(limit: str, maximum: int) -> Tell:
    return Tell(denial("make", f"limits.{limit}", "x", f"no new process: {limit} is {maximum}"))


def process(pid: int, parent: Process | None = None, depth: int = 1) -> Process:
    return Process(pid=pid, start_time=1, parent=parent, ppid=30, depth=depth, comm="make")


class Tree:
    """Each count finds what `finds` has next, and takes a second."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **limits: Any) -> None:
        policy = session_of(limits=Limits(at_fork=True, **limits), name="x")
        mediation: Any = Anything()
        self.subject = Forks(session_of(policy=policy), mediation)
        self.finds: list[int] = []
        self.counted: list[str] = []
        self.now_s = 100.0
        clock = SimpleNamespace(monotonic=lambda: self.now_s)
        kernel = SimpleNamespace(
            children=lambda pid: [0] * self._count(pid),
            count_descendants=lambda _: self._count("tree"),
        )
        monkeypatch.setattr(module, "time", clock)
        monkeypatch.setattr(module, "linux_process", kernel)

    def forks(self, who: Process, *, syscall: str = "clone", sibling: bool = False) -> Transcript:
        return play(self.subject.mediate(who, syscall, makes_sibling=sibling))

    def _count(self, what: object) -> int:
        self.now_s += 1
        self.counted.append(str(what))
        return self.finds.pop(0)


REFUSED = Fail(errno.EAGAIN)


def test_processes_are_counted_only_when_the_bound_says_there_is_no_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tree, make = Tree(monkeypatch, max_processes=3, max_children=9), process(40)
    tree.forks(make).yields(ContinueFork(make)).ends()
    tree.forks(make).yields(ContinueFork(make)).ends()
    assert not tree.counted
    tree, make = Tree(monkeypatch, max_processes=2), process(40)
    tree.forks(make).yields(ContinueFork(make)).ends()
    tree.finds = [1]
    tree.forks(make).yields(ContinueFork(make)).ends()
    assert tree.counted == ["tree"]


def test_one_process_too_many_fails_and_is_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    tree, make = Tree(monkeypatch, max_processes=2), process(40)
    tree.forks(make).next()
    tree.finds = [2]
    transcript = tree.forks(make, syscall="vfork")
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


def test_only_the_first_refusal_is_told_and_one_that_cannot_be_recorded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make = process(40)
    for reply, told_too in ((Logged.COUNTED, []), (Logged.FAILED, [told("max_processes", 1)])):
        tree = Tree(monkeypatch, max_processes=1)
        tree.finds = [1]
        tree.forks(make).counts(
            "limit_exceeded", ("fork", "max_processes"), 60.0, reply=reply
        ).yields(*told_too, REFUSED).ends()


def test_a_count_in_vain_is_not_repeated_for_ten_times_as_long_as_it_took(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tree, make = Tree(monkeypatch, max_processes=1), process(40)
    tree.finds = [1, 0]
    for later_s, counts in ((0, 1), (9, 1)):
        tree.now_s += later_s
        tree.forks(make).counts("limit_exceeded", ("fork", "max_processes"), 60.0)
        assert len(tree.counted) == counts
    tree.now_s += 1
    tree.forks(make).yields(ContinueFork(make)).ends()


def test_children_are_counted_for_their_own_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    tree, make, other = Tree(monkeypatch, max_children=1), process(40), process(41)
    tree.forks(make).yields(ContinueFork(make)).ends()
    tree.forks(other).yields(ContinueFork(other)).ends()
    tree.finds = [1]
    tree.forks(make).counts("limit_exceeded", ("fork", "max_children"), 60.0, maximum=1).yields(
        told("max_children", 1), REFUSED
    ).ends()
    assert tree.counted == ["40"]


def test_a_sibling_is_a_child_of_the_callers_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    tree, make = Tree(monkeypatch, max_children=1), process(40)
    child = process(41, parent=make, depth=2)
    tree.forks(child, sibling=True).yields(ContinueFork(make)).ends()
    tree.finds = [1, 0]
    tree.forks(make).counts("limit_exceeded", ("fork", "max_children"), 60.0)
    tree.now_s += 100
    tree.forks(make, sibling=True).yields(ContinueFork(make)).ends()
    assert tree.counted == ["40", "40"]


def test_a_fork_that_one_limit_refuses_takes_no_room_from_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tree = Tree(monkeypatch, max_children=5, max_processes=1)
    make, other = process(40), process(41)
    tree.finds = [1] * 9
    for _ in range(9):
        tree.forks(make).next()
        tree.now_s += 100
    assert make.children is not None and make.children.at_most == 0
    tree.finds = [0]
    tree.forks(other).yields(ContinueFork(other)).ends()


def test_a_process_beyond_the_depth_makes_none(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Tree(monkeypatch, max_depth=2)
    at_the_limit, beyond = process(40, depth=2), process(41, depth=3)
    tree.forks(at_the_limit).yields(ContinueFork(at_the_limit)).ends()
    tree.forks(beyond).counts(
        "limit_exceeded", ("fork", "max_depth"), 60.0, depth=3, maximum=2
    ).yields(told("max_depth", 2), REFUSED).ends()


def test_no_process_is_made_once_the_tree_is_being_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Tree(monkeypatch, max_processes=9)
    tree.subject.stop()
    tree.forks(process(40)).fails(errno.EAGAIN, Unrecorded.NOTHING_HAPPENS)
