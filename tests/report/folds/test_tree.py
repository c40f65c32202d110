from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwrap.events import Event
from sigwrap.report.folds import tree as module
from sigwrap.report.folds.steps import Exec
from sigwrap.report.folds.tree import (
    NODE_LIMIT,
    Processes,
    ProcessTree,
    command_line,
    words,
)


class Tree(ProcessTree):
    """With a number for each event, as in a log."""

    def __init__(self) -> None:
        self.known = Processes()
        super().__init__(self.known)
        self.seq = 0

    def event(self, kind: str, pid: int, **payload: Any) -> Event:
        self.seq += 1
        return Event(self.seq, 0, kind, pid, payload, "")

    def runs_now(self, pid: int, ppid: int, *argv: str, below: int = 0, **more: Any) -> None:
        event = self.event("exec_allowed", pid, ppid=ppid, argv=list(argv))
        self.known.executed(event)
        line = command_line(list(argv))
        run = Exec(event, ppid, below, list(argv), line, False, "allowed", **more)
        self.executed(self.known.of(event), run)

    def denied(self, pid: int, ppid: int, *argv: str, below: int = 0) -> None:
        event = self.event("exec_denied", pid, ppid=ppid, argv=list(argv))
        run = Exec(event, ppid, below, list(argv), command_line(list(argv)), False, "denied")
        self.refused(self.known.of(event), run)

    def fails(self, pid: int) -> None:
        if (process := self.known.get(pid)) is not None:
            self.not_started(process)

    def ends(self, pid: int, ppid: int = 1, code: int | None = 0, signal: str = "") -> None:
        payload = {"ppid": ppid, "exit_code": code, "signal_name": signal, "comm": "bash"}
        event = self.event("process_exited", pid, **payload)
        self.exited(event, self.known.end(event))


@pytest.fixture
def tree() -> Tree:
    return Tree()


def of_a_shell() -> Tree:
    tree = Tree()
    tree.runs_now(10, 1, "sh")
    return tree


def drawn(tree: Tree) -> list[tuple[int, str, int, int]]:
    return [
        (
            line.depth,
            ("=> " if line.kind == module.IN_PLACE else "") + line.command,
            line.count,
            line.running,
        )
        for line in tree.lines()
    ]


def test_a_pid_that_is_used_again_is_another_process_even_if_its_end_was_missed() -> None:
    for is_seen in (True, False):
        tree = Tree()
        tree.runs_now(10, 1, "make")
        tree.runs_now(11, 10, "cc")
        if is_seen:
            tree.ends(11, 10)
        tree.runs_now(11, 1, "ld")
        assert drawn(tree) == [(0, "make", 1, 1), (1, "cc", 1, 0), (0, "ld", 1, 1)]
        assert (tree.processes, tree.running) == (3, 2)


def test_past_the_limit_lines_are_only_counted(tree: Tree) -> None:
    for pid in range(10, NODE_LIMIT + 110):
        tree.runs_now(pid, 1, f"program{pid}")
    tree.runs_now(9_999, NODE_LIMIT + 100, "child of one that is not shown")
    assert len(tree.lines()) == NODE_LIMIT
    assert tree.not_shown == 101
    assert tree.processes == NODE_LIMIT + 101


def test_a_tree_deeper_than_any_recursion_is_listed(tree: Tree) -> None:
    for pid in range(10, 10 + NODE_LIMIT):
        tree.runs_now(pid, pid - 1, "sh")
    assert tree.lines()[-1].depth == NODE_LIMIT - 1


def test_processes_whose_end_is_never_seen_do_not_fill_the_memory(tree: Tree) -> None:
    for pid in range(10, module._PROCESSES_LIMIT + 30):
        tree.runs_now(pid, 1, "true")
    assert len(tree.known.pids()) == module._PROCESSES_LIMIT


def test_a_huge_command_line_is_cut() -> None:
    assert words(command_line(["a", "b c"])) == ["a", "b c"]
    assert words(command_line(["a"] * 64)) == ["a"] * 64
    assert words(command_line(["a"] * 65)) == ["a"] * 64 + ["..."]
    assert command_line(["x" * 400]) == "x" * 400
    assert command_line(["x" * 401]) == "x" * 400 + "..."


# Who only forks


def test_what_a_subshell_starts_is_below_the_nearest_ancestor_that_ran_something() -> None:
    tree = of_a_shell()
    tree.runs_now(12, 11, "ls", below=10)
    tree.denied(13, 11, "rm", below=10)
    assert drawn(tree) == [(0, "sh", 1, 1), (1, "ls", 1, 1), (1, "rm", 1, 0)]


def test_equal_commands_of_several_subshells_are_one_line() -> None:
    tree = of_a_shell()
    for subshell in (11, 21, 31):
        tree.runs_now(subshell + 1, subshell, "make", below=10)
        tree.runs_now(subshell + 2, subshell + 1, "cc")
        tree.ends(subshell + 2, subshell + 1, None, "SIGKILL")
        tree.ends(subshell, 10)
    tree.ends(32, 31, 2)
    assert drawn(tree) == [(0, "sh", 1, 1), (1, "make", 3, 2), (2, "cc", 3, 0)]
    assert tree.lines()[1].failed == 1
    assert tree.lines()[2].killed == {"SIGKILL": 3}


def test_subshells_that_a_signal_killed_are_one_line_where_they_were_forked() -> None:
    tree = of_a_shell()
    tree.ends(11, 10, None, "SIGSEGV")
    tree.ends(13, 10, None, "SIGKILL")
    assert drawn(tree) == [(0, "sh", 1, 1), (1, "bash", 2, 0)]
    fork = tree.lines()[1]
    assert (fork.kind, fork.processes) == (module.FORKED, 2)
    assert fork.killed == {"SIGSEGV": 1, "SIGKILL": 1}
    assert (tree.processes, tree.ran, tree.running) == (3, 1, 1)


def test_subshells_that_were_killed_are_only_counted_past_the_limit(tree: Tree) -> None:
    for pid in range(10, NODE_LIMIT + 30):
        tree.runs_now(pid, 1, f"program{pid}")
    tree.ends(9_999, 10, None, "SIGKILL")
    assert (len(tree.lines()), tree.not_shown) == (NODE_LIMIT, 21)


# What did not run


def test_a_refused_exec_is_a_leaf() -> None:
    tree = of_a_shell()
    tree.denied(11, 10, "rm", "-rf", "/")
    tree.denied(10, 1, "dd")
    tree.runs_now(10, 1, "true")
    assert drawn(tree) == [
        (0, "sh", 1, 0),
        (1, "rm\0-rf\0/", 1, 0),
        (1, "dd", 1, 0),
        (1, "=> true", 1, 1),
    ]
    assert [line.kind == module.REFUSED for line in tree.lines()] == [False, True, True, False]
    assert [line.processes for line in tree.lines()] == [1, 1, 0, 0]
    assert (tree.processes, tree.ran, tree.running) == (2, 1, 1)


def test_a_refused_process_is_counted_once_whatever_it_does_then() -> None:
    tree = of_a_shell()
    tree.denied(11, 10, "rm")
    tree.denied(11, 10, "dd")
    tree.runs_now(11, 10, "true")
    assert (tree.processes, tree.ran) == (2, 2)
    tree.ends(11, 10)
    tree.denied(11, 10, "rm")
    tree.denied(11, 12, "rm")  # the end of the one before was not seen
    assert (tree.processes, tree.ran) == (4, 2)
    assert sum(line.processes for line in tree.lines()) == 4


def test_a_process_killed_after_a_refusal_died_on_its_line() -> None:
    tree = of_a_shell()
    tree.denied(11, 10, "rm")
    tree.ends(11, 10, None, "SIGKILL")
    tree.denied(12, 10, "rm")
    tree.ends(12, 10, 126)
    assert drawn(tree) == [(0, "sh", 1, 1), (1, "rm", 2, 0)]
    assert tree.lines()[1].killed == {"SIGKILL": 1}
    assert tree.lines()[1].failed == 0


def test_an_exec_that_the_kernel_refused_leaves_what_ran_before() -> None:
    tree = of_a_shell()
    tree.runs_now(10, 1, "missing")
    tree.fails(10)
    tree.runs_now(10, 1, "true")
    tree.fails(99)
    assert drawn(tree) == [(0, "sh", 1, 0), (1, "=> missing", 1, 0), (1, "=> true", 1, 1)]
    assert [line.not_started for line in tree.lines()] == [0, 1, 0]


def test_of_a_selection_the_lines_above_are_shown_too(tree: Tree) -> None:
    for pid, ppid, word, is_selected in (
        (10, 1, "sh", False),
        (11, 10, "make", False),
        (12, 11, "cc", True),
        (13, 10, "git", False),
    ):
        tree.runs_now(pid, ppid, word, is_selected=is_selected)
    assert [line.command for line in tree.lines()] == ["sh", "make", "cc"]


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("exec"), st.integers(1, 6), st.integers(1, 6), st.integers(0, 6)),
            st.tuples(st.just("deny"), st.integers(1, 6), st.integers(1, 6), st.integers(0, 6)),
            st.tuples(st.just("exit"), st.integers(1, 6), st.integers(0, 6), st.integers(0, 1)),
            st.tuples(st.just("kill"), st.integers(1, 6), st.integers(0, 6), st.just(0)),
            st.tuples(st.just("fail"), st.integers(1, 6), st.just(0), st.just(0)),
        )
    )
)
def test_every_exec_is_in_the_tree_once_whatever_comes(
    steps: list[tuple[str, int, int, int]],
) -> None:
    tree = Tree()
    asked = 0
    for step, pid, ppid, more in steps:
        match step:
            case "exec":
                asked += 1
                tree.runs_now(pid, ppid, f"program{more}", below=more)
            case "deny":
                asked += 1
                tree.denied(pid, ppid, f"program{more}", below=more)
            case "exit":
                tree.ends(pid, ppid, more)
            case "kill":
                tree.ends(pid, ppid, None, "SIGKILL")
            case "fail":
                tree.fails(pid)
    lines = tree.lines()
    assert sum(line.count for line in lines if line.kind != module.FORKED) == asked
    assert sum(line.processes for line in lines) == tree.processes
    assert tree.ran <= tree.processes
    assert sum(line.running for line in lines) == tree.running
    assert all(line.running >= 0 for line in lines)
