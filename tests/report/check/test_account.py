"""What a session says of itself as a whole."""

from __future__ import annotations

from typing import Any

import pytest

from sigwrap.events import Event
from sigwrap.report.check.account import Account

STARTED = {"command": ["npm", "start"], "command_pid": 10}


def event(type_name: str, pid: int = 10, **payload: Any) -> Event:
    return Event(2, 0, type_name, pid, payload, "")


def ended(status: int, reason: str = "the command ended") -> Event:
    return event("session_ended", 1, exit_status=status, reason=reason)


def exited(code: int | None = None, signal: int | None = None, name: str = "") -> Event:
    return event("process_exited", exit_code=code, signal=signal, signal_name=name)


def objections(*events: Event) -> list[str]:
    account = Account(STARTED)
    return [found for each in events if (found := account.note(each))]


@pytest.mark.parametrize(
    ("events", "problem"),
    [
        ((exited(3), ended(3)), ""),
        ((exited(None, 15, "SIGTERM"), ended(143, "the command died of SIGTERM")), ""),
        ((ended(127, "the command could not be run: no such file"),), ""),
        ((exited(0), event("interrupt_received"), ended(130, "interrupted")), ""),
        ((event("agent_signal"), exited(0), ended(130, "SIGTERM from ann")), ""),
        ((event("limit_exceeded"), exited(0), ended(124, "wall_time: 1 s are over")), ""),
        ((exited(124), ended(124)), ""),
        ((exited(124), ended(124, "killed: sigwrap's front process died")), ""),
        ((exited(None, 2, "SIGINT"), ended(130, "killed: sigwrap's front process died")), ""),
        ((event("process_exited", 11, exit_code=9), exited(0), ended(0)), ""),
        ((ended(0),), ""),
        ((exited(3), ended(0)), "the command's own status was 3, not 0"),
        ((exited(None, 9, "SIGKILL"), ended(0)), "the command's own status was 137, not 0"),
        ((exited(0), ended(130, "interrupted")), "no event shows an interrupt of the session"),
        (
            (exited(0), ended(124, "wall_time: 1 s are over")),
            "no event shows that a limit was exceeded",
        ),
        ((exited(None, 9, "SIGTERM"),), "its signal_name does not match signal 9"),
        ((exited(0, 9, "SIGKILL"),), "it has both an exit code and a signal"),
    ],
)
def test_an_end_that_agrees_with_what_came_before_or_does_not(
    events: tuple[Event, ...], problem: str
) -> None:
    assert objections(*events) == ([problem] if problem else [])


@pytest.mark.parametrize(
    ("first", "problem"),
    [
        (event("exec_allowed", argv=["npm", "start"]), ""),
        (event("exec_denied", argv=[]), ""),
        (event("exec_allowed", argv=["npm", "[...]"], cut={}), ""),
        (event("exec_allowed", argv=["rm"]), "the first exec's argv differs"),
        (event("exec_allowed", 11, argv=["npm", "start"]), "the first exec is not the command's"),
    ],
)
def test_the_first_exec_is_that_of_the_sessions_command(first: Event, problem: str) -> None:
    account = Account(STARTED)
    assert account.first_exec(first).startswith(problem)
    assert account.has_begun
    assert Account({}).has_begun
