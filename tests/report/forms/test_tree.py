from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sigwrap.report.folds.ending import Ending
from sigwrap.report.folds.selection import Selection
from sigwrap.report.folds.summary import SummaryFold
from sigwrap.report.forms.style import PLAIN
from sigwrap.report.forms.tree import tree_lines, tree_title

Scenarios = Callable[..., Any]


def tree(made: Any, ending: Ending = Ending.NOT_CLEAN, columns: int = 0) -> list[str]:
    """Below its title."""
    fold = SummaryFold()
    for event in made.session.events():
        fold.add(event)
    summary = fold.result(ending)
    return [tree_title(summary), *tree_lines(summary, PLAIN, columns)]


def test_a_node_of_the_tree_says_how_its_processes_fared(scenario: Scenarios) -> None:
    made = scenario()
    for pid in (10, 11):
        made.execute(pid, 1, "make")
    made.execute(12, 1, "cc")
    made.execute(13, 1, "ld")
    made.exit(13, 1)
    made.log.close()
    assert tree(made, Ending.RUNNING) == [
        "Processes (4, 3 running)",
        "10 make  (x2, 2 running)",
        "12 cc  (running)",
        "13 ld  (failed)",
    ]


def test_the_title_counts_what_the_lines_show(scenario: Scenarios) -> None:
    made = scenario()
    made.execute(10, 1, "sh")
    for pid, rule in ((11, "a"), (12, "a"), (13, "b")):
        made.add("exec_denied", pid, path="/bin/rm", argv=["rm", rule], ppid=10, rule_name=rule)
    made.exit(14, None, "SIGKILL")
    made.log.close()
    assert tree(made, Ending.RUNNING) == [
        "Processes (5, 1 running)",
        "10 sh  (running)",
        "  11 rm a  (x2, denied)",
        "  13 rm b  (denied)",
        "14 comm  (only forked, 1 died of SIGKILL)",
    ]
    fold = SummaryFold(Selection(rule="b"))
    for event in made.session.events():
        fold.add(event)
    assert tree_title(fold.result(Ending.RUNNING)) == "Processes (2 of 5, 1 running)"


def test_a_command_that_was_refused_is_a_process(scenario: Scenarios) -> None:
    made = scenario()
    made.add("exec_denied", 10, path="/bin/rm", argv=["rm"], ppid=1)
    made.log.close()
    assert tree(made) == ["Processes (1)", "10 rm  (denied)"]


def test_a_deep_tree_is_indented_so_far_and_no_further(scenario: Scenarios) -> None:
    made = scenario()
    for pid in range(10, 32):
        made.execute(pid, pid - 1, "sh")
    made.log.close()
    assert tree(made, Ending.RUNNING)[-2:] == [
        20 * "  " + "30 sh  (running)",
        20 * "  " + "[21 deep] 31 sh  (running)",
    ]


@pytest.mark.parametrize(("processes", "left_out"), [(60, []), (61, ["... 1 more lines"])])
def test_a_tree_is_shown_up_to_a_length(
    scenario: Scenarios, processes: int, left_out: list[str]
) -> None:
    made = scenario()
    for pid in range(10, 10 + processes):
        made.execute(pid, 1, f"program{pid}")
    made.log.close()
    assert [line[:16] for line in tree(made) if "are not shown" in line] == left_out


def test_of_a_long_tree_what_went_wrong_is_shown_with_what_is_above_it(scenario: Scenarios) -> None:
    made = scenario()
    for pid in range(10, 110):
        made.execute(pid, 1, f"program{pid}")
        made.exit(pid)
    made.execute(200, 1, "sh")
    made.execute(201, 200, "make")
    made.execute(202, 201, "cc")
    made.exit(202, 1)
    made.exit(201)
    made.exit(200)
    made.log.close()
    lines = tree(made)
    assert lines[:2] == ["Processes (60 of 103)", "10 program10"]
    assert lines[-4:-1] == ["200 sh", "  201 make", "    202 cc  (failed)"]
    assert lines[-1] == "... 43 more lines are not shown (--process shows a part)"
