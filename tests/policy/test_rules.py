from __future__ import annotations

import pytest

from sigwrap.policy.judge.rules import Limits


@pytest.mark.parametrize(
    ("limits", "at_forks", "at_execs"),
    [
        (Limits(), False, False),
        (Limits(at_fork=True), False, False),
        (Limits(max_depth=1), False, False),
        (Limits(max_depth=1, at_fork=True), True, False),
        (Limits(max_children=1), False, True),
        (Limits(max_children=1, at_fork=True), True, False),
        (Limits(max_processes=1), False, True),
        (Limits(max_processes=1, at_fork=True), True, False),
        (Limits(max_execs=1, wall_time_s=1, at_fork=True), False, False),
    ],
)
def test_where_processes_are_counted(limits: Limits, at_forks: bool, at_execs: bool) -> None:
    assert (limits.hold_at_forks, limits.count_at_execs) == (at_forks, at_execs)


def test_a_limits_key_has_no_unit() -> None:
    keys = Limits.keys()
    assert (keys["wall_time_s"], keys["memory_bytes"], keys["max_depth"]) == (
        "wall_time",
        "memory",
        "max_depth",
    )
