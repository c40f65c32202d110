from __future__ import annotations

from typing import Any

import pytest

from sigwrap.report.folds.ending import Ending
from sigwrap.report.folds.selection import Selection
from sigwrap.report.forms.layout import PLAIN
from sigwrap.report.forms.tree import tree_lines, tree_title
from tests.report.conftest import Scenario, summarise


def tree(made: Any, ending: Ending = Ending.NOT_CLEAN, columns: int = 0) -> list[str]:
    """Below its title."""
    summary = summarise(made, ending)
    return [tree_title(summary), *tree_lines(summary, PLAIN, columns)]


def test_the_title_counts_the_processes_of_the_tree(made: Scenario) -> None:
    made.execute(10, 1, "sh")
    for pid, rule in ((11, "a"), (12, "a"), (13, "b")):
        made.add("exec_denied", pid, path="/bin/rm", argv=["rm", rule], ppid=10, rule_name=rule)
    made.exit(14, None, "SIGKILL")
    assert tree(made, Ending.RUNNING) == [
        "Processes (5, 1 running)",
        "10 sh  (running)",
        "  11 rm a  (x2, denied)",
        "  13 rm b  (denied)",
        "14 comm  (only forked, 1 killed by SIGKILL)",
    ]
    of_a_rule = summarise(made, Ending.RUNNING, Selection(rule="b"))
    assert tree_title(of_a_rule) == "Processes (2 of 5, 1 running)"


def test_a_deep_tree_is_indented_so_far_and_no_further(made: Scenario) -> None:
    for pid in range(10, 32):
        made.execute(pid, pid - 1, "sh")
    assert tree(made, Ending.RUNNING)[-2:] == [
        20 * "  " + "30 sh  (running)",
        20 * "  " + "[21 deep] 31 sh  (running)",
    ]


@pytest.mark.parametrize(("processes", "left_out"), [(60, []), (61, ["... 1 more lines"])])
def test_a_tree_is_shown_up_to_a_length(
    made: Scenario, processes: int, left_out: list[str]
) -> None:
    for pid in range(10, 10 + processes):
        made.execute(pid, 1, f"program{pid}")
    assert [line[:16] for line in tree(made) if "more lines" in line] == left_out


def test_of_a_long_tree_what_went_wrong_is_shown_with_what_is_above_it(made: Scenario) -> None:
    for pid in range(10, 110):
        made.execute(pid, 1, f"program{pid}")
        made.exit(pid)
    made.execute(200, 1, "sh")
    made.execute(201, 200, "make")
    made.execute(202, 201, "cc")
    made.exit(202, 1)
    made.exit(201)
    made.exit(200)
    lines = tree(made)
    assert lines[:2] == ["Processes (103)", "10 program10"]
    assert lines[-4:-1] == ["200 sh", "  201 make", "    202 cc  (failed)"]
    assert lines[-1] == "... 43 more lines (--process PID shows a part of the tree)"
