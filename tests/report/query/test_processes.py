from __future__ import annotations

from typing import Any

from sigwrap.events import Event
from sigwrap.report.query import processes
from sigwrap.report.query.processes import Process, ProcessesFold


def event(type_name: str, pid: int, time_ns: int = 1, **payload: Any) -> Event:
    return Event(seq=1, time_ns=time_ns, type=type_name, pid=pid, payload=payload, hash="")


def found(*events: Event) -> list[Process]:
    fold = ProcessesFold("s1")
    ended = [process for each in events for process in fold.add(each)]
    return [*ended, *fold.rest()]


def test_a_pid_that_is_used_again_is_another_process() -> None:
    first, second = found(
        event("exec_allowed", 7, 1, argv=["a"]),
        event("process_exited", 7, 2, exit_code=0),
        event("exec_allowed", 7, 3, argv=["b"]),
    )
    assert (first.command, first.started_ns, first.ended_ns) == ("a", 1, 2)
    assert (second.command, second.started_ns, second.ended_ns) == ("b", 3, None)


def test_an_exec_that_failed_was_none() -> None:
    (process,) = found(
        event("exec_allowed", 7, argv=["a"], path="/a"),
        event("exec_allowed", 7, argv=["b"], path="/b"),
        event("exec_failed", 7, path="/b"),
    )
    assert (process.command, process.path, process.execs) == ("a", "/a", 1)


def test_retries_along_path_are_one_denial_as_in_the_report() -> None:
    def denied(path: str, *argv: str, **more: Any) -> Event:
        return event("exec_denied", 7, path=path, argv=argv, rule_name="r", **more)

    first, second = found(
        denied("/usr/bin/rm", "rm", "x"),
        denied("/bin/rm", "rm", "x", retry=True),
        denied("/bin/rm", "rm", "y"),
        event("process_exited", 7, exit_code=127),
        denied("/usr/bin/rm", "rm", "y"),
    )
    assert (first.denied, second.denied) == (2, 1)


def test_what_ran_is_the_replacement() -> None:
    (process,) = found(
        event(
            "exec_redirected", 7, argv=["rm"], replacement="/t", replacement_argv=["trash", "x y"]
        )
    )
    assert (process.command, process.path) == ("trash 'x y'", "/t")


def test_of_too_many_open_ones_the_longest_silent_is_given_out(monkeypatch: Any) -> None:
    monkeypatch.setattr(processes, "_OPEN_LIMIT", 2)
    fold = ProcessesFold("s1")
    given = [
        process.pid
        for pid in (1, 2, 1, 3)
        for process in fold.add(event("exec_allowed", pid, argv=["a"]))
    ]
    assert given == [2]
    assert [process.pid for process in fold.rest()] == [1, 3]
