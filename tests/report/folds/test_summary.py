from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from sigwrap.events import Event
from sigwrap.report.folds.ending import Ending
from sigwrap.report.folds.summary import LISTED, Failure, Summary
from tests.report.conftest import SECOND, Scenario, Scenarios, summarise


def test_any_number_of_unknown_types_hides_no_denial() -> None:
    fold = Summary()
    for number in range(300):
        fold.add(Event(number + 1, 0, f"unknown_{number}", 1, {}, ""))
    fold.add(Event(301, 0, "exec_denied", 1, {"argv": ["rm"], "comm": "sh"}, ""))
    summary = fold.end(Ending.NOT_CLEAN)
    assert summary.counts.execs == {"denied": 1}
    assert (summary.by_type["exec_denied"], summary.by_type["others"]) == (1, 100)


def test_a_duration_that_can_not_be_is_that_of_the_events(scenario: Scenarios) -> None:
    longest = (1 << 63) - 1
    for number, (recorded, duration_ns) in enumerate(
        ((0, 0), (longest, longest), (1 << 63, SECOND), (-1, SECOND), ("2", SECOND), (None, SECOND))
    ):
        made = scenario(session_id=f"s{number}")
        made.end(duration_ns=recorded)
        assert summarise(made).duration_ns == duration_ns


def test_an_exec_without_arguments_is_known_by_its_path() -> None:
    argvs: tuple[object, ...] = (None, [], "words", {"a": 1})
    for argv in argvs:
        fold = Summary()
        payload = {"path": "/bin/x", "argv": argv, "ppid": "no number"}
        fold.add(Event(seq=1, time_ns=1, type="exec_audited", pid=7, payload=payload, hash=""))
        (line,) = fold.end(Ending.RUNNING).tree
        assert (line.command, line.first_pid) == ("/bin/x", 7)


def test_what_failed_is_counted_by_command_and_status(made: Scenario) -> None:
    for pid, code in ((10, 1), (11, 1), (12, 7), (13, 0)):
        made.execute(pid, 1, "npm", "test")
        made.exit(pid, code)
    made.exit(99, 1)  # which had run nothing
    made.deny(99, 1, "r", "rm")
    summary = summarise(made)
    assert summary.programs.counts == (("/usr/bin/npm", 4),)
    assert summary.failures.counts == ((Failure("npm\0test", 1), 2), (Failure("npm\0test", 7), 1))


def test_what_waits_for_an_answer_is_listed_until_it_has_one(made: Scenario) -> None:
    for approval_id in ("a1", "a2", "a3"):
        made.add("approval_requested", 10, approval_id=approval_id, what="npm install")
    made.add("approval_denied", 10, approval_id="a2", what="npm install")
    waiting = [event.payload["approval_id"] for event in summarise(made).waiting]
    assert waiting == ["a1", "a3"]


@pytest.mark.tier("ci")
def test_memory_does_not_grow_with_the_log() -> None:
    """Every event is of another process, program, sender and target: the worst case."""
    fold = Summary()

    def happens(type_name: str, number: int, **payload: Any) -> None:
        fold.add(Event(number, 1, type_name, number, payload, ""))

    def add(first: int, last: int) -> int:
        for n in range(first, last):
            happens("exec_audited", n, path=f"/p{n}", argv=[f"p{n}"], ppid=1, decision="audit")
            sent = {"signal_name": "SIGTERM", "source_cmd": f"s{n}", "target_cmd": "t"}
            happens("signal_sent", n, **sent)
            happens("process_exited", n, exit_code=None, signal_name="SIGKILL")
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        early = add(0, 6_000)
        late = add(6_000, 20_000)
    finally:
        tracemalloc.stop()
    assert late < early * 1.5
    summary = fold.end(Ending.ENDED)
    assert summary.processes.processes == 20_000
    assert summary.deaths.more == 20_000 - LISTED
    assert not summary.programs.exact
    assert sum(count for _, count in summary.programs.counts) + summary.programs.rest == 20_000
