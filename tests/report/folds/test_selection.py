from __future__ import annotations

from typing import Any

from sigwrap.events import Event
from sigwrap.report.folds.selection import AskedAbout, Selection


def execed(seq: int, pid: int, ppid: int, *argv: str, **more: Any) -> Event:
    payload = {"path": f"/usr/bin/{argv[0]}", "argv": list(argv), "ppid": ppid, **more}
    return Event(seq, seq * 10, "exec_allowed", pid, payload, "")


def exited(seq: int, pid: int) -> Event:
    return Event(seq, seq * 10, "process_exited", pid, {"ppid": 1}, "")


def taken(selection: Selection, *events: Event) -> list[int]:
    return [event.seq for event in events if selection.takes(event)]


def test_of_some_time() -> None:
    events = [execed(seq, 10, 1, "sh") for seq in range(1, 6)]
    assert taken(Selection(since_ns=20, until_ns=40), *events) == [2, 3, 4]
    assert taken(Selection(since_ns=41), *events) == [5]
    assert taken(Selection(until_ns=9), *events) == []


def test_of_one_rule_and_the_others_are_remembered() -> None:
    selection = Selection(rule="shells")
    assert taken(
        selection,
        execed(1, 10, 1, "sh", rule_name="shells"),
        execed(2, 10, 1, "ls", rule_name="tools"),
        execed(3, 10, 1, "ls", rule_name=["shells"]),
    ) == [1]
    assert list(selection.rules_seen) == ["shells", "tools"]
    assert selection.taken == 1


def test_of_a_process_and_all_that_it_started() -> None:
    events = [
        execed(1, 10, 1, "sh"),
        execed(2, 11, 10, "make"),
        execed(3, 12, 11, "cc"),
        execed(4, 13, 10, "git"),
        execed(5, 15, 14, "ld", below=12),  # 14 is a subshell
        Event(6, 60, "signal_sent", 13, {"target_pid": 12}, ""),
        Event(7, 70, "signal_sent", 13, {"target_pid": 10}, ""),
        exited(8, 12),
        execed(9, 12, 10, "ls"),  # the number again
        exited(10, 11),
    ]
    assert taken(Selection(process="make"), *events) == [2, 3, 5, 6, 8, 10]
    assert taken(Selection(process="12"), *events) == [3, 5, 6, 8, 9]
    assert taken(Selection(process="none"), *events) == []


def test_asked_selects_approval_requests_with_any_answer() -> None:
    def event(seq: int, name: str, pid: int, **payload: object) -> Event:
        return Event(seq, seq, name, pid, payload, "")

    events = [
        event(1, "approval_requested", 10),
        execed(2, 11, 1, "ls"),
        event(3, "approval_denied", 10),
        event(4, "exec_denied", 10),
        event(5, "exec_denied", 10),  # by what was answered before
        event(6, "approval_granted", 11),
        event(7, "exec_allowed", 11, approval_id="a"),
        event(8, "exec_allowed", 11, approval_id="a"),  # the shell of an approved script
        event(9, "approval_denied", 12),
        exited(10, 12),
        event(11, "exec_denied", 12),  # of another process with that number
        event(12, "limit_exceeded", 12),
    ]
    asked = [1, 3, 4, 6, 7, 8, 9]
    assert taken(Selection(only=frozenset({"asked"})), *events) == asked
    both = Selection(only=frozenset({"asked", "denied"}))
    assert taken(both, *events) == sorted([*asked, 5, 11])


def test_answered_requests_do_not_fill_the_memory() -> None:
    about = AskedAbout()
    for pid in range(2_000):
        about.is_it(Event(pid, pid, "approval_denied", pid, {}, ""), "")
    assert len(about.answered) == 1_000
