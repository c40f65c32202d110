from __future__ import annotations

from sigwrap.session.recorder import LogBudget

MIB = 1 << 20


def test_half_and_full_are_passed_once_each() -> None:
    budget = LogBudget(1000, ends_run=True)
    assert budget.next_mark == 500
    assert budget.passed(499) == ""
    assert budget.passed(500) == "half"
    assert (budget.next_mark, budget.passed(999)) == (1000, "")
    assert budget.passed(1000) == "full"
    assert budget.passed(5000) == ""


def test_of_a_log_that_one_event_fills_nobody_hears_that_it_is_half_full() -> None:
    budget = LogBudget(1000, ends_run=True)
    assert (budget.passed(2000), budget.passed(2000)) == ("full", "")


def test_without_a_limit_nothing_is_passed_and_the_smallest_is_one() -> None:
    assert LogBudget(0, ends_run=True).next_mark > 1 << 62
    assert LogBudget(1, ends_run=True).next_mark == 1


def test_beyond_the_limit_the_tree_s_end_is_still_recorded() -> None:
    for maximum, size, admitted in (
        (MIB, MIB - 1, {"exec_allowed", "process_exited", "session_ended"}),
        (MIB, MIB, {"process_exited", "session_ended"}),
        (MIB, 2 * MIB - 1, {"process_exited", "session_ended"}),
        (MIB, 2 * MIB, {"session_ended"}),
        (160 * MIB, 170 * MIB - 1, {"process_exited", "session_ended"}),
        (160 * MIB, 170 * MIB, {"session_ended"}),
    ):
        budget = LogBudget(maximum, ends_run=False)
        events = ("exec_allowed", "process_exited", "session_ended")
        assert {event for event in events if budget.admits(size, event)} == admitted
