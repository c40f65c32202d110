"""Requests wait for their turn, and go on in the order in which they came."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sigwrap.session.effects import ExecTurn
from sigwrap.session.perform import PAUSED
from sigwrap.session.processes import ExecTurns
from tests.support.stand_in import session_of


class Requests:
    def __init__(self) -> None:
        self.gone_on: list[str] = []
        self.freed: list[str] = []  # whose tracers may go on
        self.turns = ExecTurns(session_of(mediation=SimpleNamespace(performer=self)))

    def comes(self, name: str, pid: int = 1) -> None:
        process = SimpleNamespace(pid=pid)
        holdings = SimpleNamespace(free_tracer=lambda: self.freed.append(name))
        request: Any = SimpleNamespace(name=name, process=process, holdings=holdings)
        if self.turns.wait(request, ExecTurn()) is not PAUSED:
            self.wake(request)

    def wake(self, request: Any, _reply: object = None) -> None:
        self.gone_on.append(request.name)
        if request.name == "takes":
            self.turns.take(request.process)
        if request.name == "stops":
            self.turns.close()


@pytest.fixture
def requests() -> Requests:
    return Requests()


ONE: Any = SimpleNamespace(pid=1)


def test_one_exec_of_a_process_at_a_time(requests: Requests) -> None:
    for name in ("takes", "takes", "third"):
        requests.comes(name)
    requests.comes("another", pid=2)
    assert requests.gone_on == ["takes", "another"]
    requests.turns.give_back(ONE)
    assert requests.gone_on == ["takes", "another", "takes"]
    requests.turns.give_back(ONE)
    assert requests.gone_on[-1] == "third"


def test_who_waits_keeps_no_tracer_from_running(requests: Requests) -> None:
    """The exec that goes first may need it."""
    for name in ("takes", "waits"):
        requests.comes(name)
    assert requests.freed == ["waits"]


def test_none_goes_on_while_the_session_stands_still(requests: Requests) -> None:
    requests.turns.close()
    for name in ("one", "stops", "two"):
        requests.comes(name)
    assert (requests.gone_on, requests.turns.held) == ([], 3)
    requests.turns.open()
    assert (requests.gone_on, requests.turns.held) == (["one", "stops"], 1)
    requests.turns.open()
    assert requests.gone_on == ["one", "stops", "two"]


def test_who_waited_for_an_exec_waits_on_while_the_session_stands_still(
    requests: Requests,
) -> None:
    requests.comes("takes")
    requests.comes("waits")
    requests.turns.close()
    requests.turns.give_back(ONE)
    assert (requests.gone_on, requests.turns.held) == (["takes"], 1)
    requests.turns.open()
    assert requests.gone_on == ["takes", "waits"]


def test_it_says_when_no_exec_is_in_flight(requests: Requests) -> None:
    idle: list[int] = []
    told = SimpleNamespace(no_exec_in_flight=lambda: idle.append(requests.turns.in_flight))
    requests.turns = ExecTurns(session_of(agent_signals=told))
    requests.turns.is_end_awaited = True
    requests.turns.begun("one")
    requests.turns.begun("two")
    requests.turns.ended("one")
    requests.turns.ended("one")
    assert idle == []
    requests.turns.ended("two")
    assert idle == [0]
    requests.turns.is_end_awaited = False
    requests.turns.begun("three")
    requests.turns.ended("three")
    assert idle == [0]
