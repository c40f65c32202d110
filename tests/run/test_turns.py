"""Requests wait for their turn, and go on in the order in which they came."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from sigwrap.mediate.effects import Turn
from sigwrap.run.perform import PAUSED
from sigwrap.run.turns import Turns
from tests.support.stand_in import session_of


class Requests:
    def __init__(self) -> None:
        self.gone_on: list[str] = []
        self.let_go: list[str] = []
        self.turns = Turns(session_of(mediation=SimpleNamespace(performer=self)))

    def comes(self, name: str, pid: int = 1) -> None:
        process = SimpleNamespace(pid=pid)
        held = SimpleNamespace(let_others_go=lambda: self.let_go.append(name))
        request: Any = SimpleNamespace(name=name, process=process, holdings=held)
        if self.turns.wait(request, Turn()) is not PAUSED:
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


def test_who_waits_for_an_exec_keeps_nobody_whom_that_may_need(requests: Requests) -> None:
    """A thread's exec waits for its leader, which may be at its exit stop until its tracer acts."""
    requests.comes("takes")
    requests.comes("waits")
    assert requests.let_go == ["waits"]


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
    requests.turns = Turns(session_of(agent_signals=told))
    requests.turns.goes_on("one")
    requests.turns.goes_on("two")
    requests.turns.is_over("one")
    requests.turns.is_over("one")
    assert idle == []
    requests.turns.is_over("two")
    assert idle == [0]
