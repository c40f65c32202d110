from __future__ import annotations

from sigwrap.mediate.headcount import Headcount


class Tree:
    """A count takes a second of its clock."""

    def __init__(self, alive: int) -> None:
        self.alive = alive
        self.counts = 0
        self.clock_s = 100.0

    def count(self) -> int:
        self.counts += 1
        self.clock_s += 1
        return self.alive

    def now(self) -> float:
        return self.clock_s


def admits(headcount: Headcount, tree: Tree) -> bool:
    admitted = headcount.admits(5, tree.count, tree.now)
    tree.alive += admitted
    return admitted


def test_nobody_is_counted_while_there_is_room() -> None:
    headcount, tree = Headcount(1), Tree(1)
    assert [admits(headcount, tree) for _ in range(4)] == [True] * 4
    assert tree.counts == 0
    assert not admits(headcount, tree)
    assert tree.counts == 1


def test_who_has_ended_makes_room() -> None:
    headcount, tree = Headcount(), Tree(0)
    for _ in range(5):
        admits(headcount, tree)
    tree.alive = 2
    assert [admits(headcount, tree) for _ in range(4)] == [True, True, True, False]


def test_a_count_in_vain_is_not_repeated_for_a_while() -> None:
    headcount, tree = Headcount(5), Tree(5)
    assert not admits(headcount, tree)
    tree.alive = 0
    assert not admits(headcount, tree) and tree.counts == 1
    tree.clock_s += 10
    assert admits(headcount, tree) and tree.counts == 2
