from __future__ import annotations

from sigwrap.report import tree as module
from sigwrap.report.tree import NODE_LIMIT, ProcessTree, command_line, words


def drawn(tree: ProcessTree) -> list[tuple[int, str, int, int]]:
    return [
        (line.depth, ("=> " if line.in_place else "") + line.command, line.count, line.running)
        for line in tree.lines()
    ]


def test_children_are_below_their_parent_in_the_order_of_their_start() -> None:
    tree = ProcessTree()
    tree.executed(10, 1, ["make"])
    tree.executed(11, 10, ["cc"])
    tree.executed(12, 11, ["as"])
    tree.executed(13, 10, ["ld"])
    assert drawn(tree) == [(0, "make", 1, 1), (1, "cc", 1, 1), (2, "as", 1, 1), (1, "ld", 1, 1)]
    assert (tree.processes, tree.running) == (4, 4)


def test_equal_children_are_one_line_with_a_count() -> None:
    tree = ProcessTree()
    tree.executed(10, 1, ["make"])
    for pid in range(11, 16):
        tree.executed(pid, 10, ["cc"])
        tree.exited(pid, 1 if pid < 13 else 0, "SIGKILL" if pid == 15 else "")
    assert drawn(tree) == [(0, "make", 1, 1), (1, "cc", 5, 0)]
    assert (tree.lines()[1].failed, tree.lines()[1].killed) == (2, (("SIGKILL", 1),))
    assert tree.lines()[1].first_pid == 11


def test_an_exec_in_place_stays_one_process() -> None:
    tree = ProcessTree()
    tree.executed(10, 1, ["sh"])
    tree.executed(10, 1, ["node"])
    tree.executed(11, 10, ["git"])
    assert drawn(tree) == [(0, "sh", 1, 0), (1, "=> node", 1, 1), (2, "git", 1, 1)]
    assert tree.processes == 2
    tree.exited(10, 3, "")
    assert [line.failed for line in tree.lines()] == [0, 1, 0]


def test_a_pid_that_is_used_again_is_another_process() -> None:
    tree = ProcessTree()
    tree.executed(10, 1, ["make"])
    tree.executed(11, 10, ["cc"])
    tree.exited(11, 0, "")
    tree.executed(11, 1, ["ld"])
    assert drawn(tree) == [(0, "make", 1, 1), (1, "cc", 1, 0), (0, "ld", 1, 1)]


def test_a_pid_that_is_used_again_is_another_process_even_if_its_end_was_missed() -> None:
    tree = ProcessTree()
    tree.executed(10, 1, ["make"])
    tree.executed(11, 10, ["cc"])
    tree.executed(11, 1, ["ld"])
    assert drawn(tree) == [(0, "make", 1, 1), (1, "cc", 1, 0), (0, "ld", 1, 1)]
    assert (tree.processes, tree.running) == (3, 2)


def test_a_process_that_only_forked_ends_unnoticed() -> None:
    tree = ProcessTree()
    tree.exited(99, 1, "")
    assert tree.lines() == ()


def test_past_the_limit_lines_are_only_counted() -> None:
    tree = ProcessTree()
    for pid in range(10, NODE_LIMIT + 110):
        tree.executed(pid, 1, [f"program{pid}"])
    tree.executed(9_999, NODE_LIMIT + 100, ["child of one that is not shown"])
    assert len(tree.lines()) == NODE_LIMIT
    assert tree.not_shown == 101
    assert tree.processes == NODE_LIMIT + 101


def test_processes_whose_end_is_never_seen_do_not_fill_the_memory() -> None:
    tree = ProcessTree()
    for pid in range(10, module._LIVING_LIMIT + 30):
        tree.executed(pid, 1, ["true"])
    assert tree.running == module._LIVING_LIMIT


def test_a_tree_deeper_than_any_recursion_is_listed() -> None:
    tree = ProcessTree()
    for pid in range(10, 10 + NODE_LIMIT):
        tree.executed(pid, pid - 1, ["sh"])
    assert tree.lines()[-1].depth == NODE_LIMIT - 1


def test_a_huge_command_line_is_cut() -> None:
    assert words(command_line(["a", "b c"])) == ["a", "b c"]
    assert words(command_line(["a"] * 64)) == ["a"] * 64
    assert words(command_line(["a"] * 65)) == ["a"] * 64 + ["..."]
    assert command_line(["x" * 400]) == "x" * 400
    assert command_line(["x" * 401]) == "x" * 400 + "..."
