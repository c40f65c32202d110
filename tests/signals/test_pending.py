"""While a request waits: for a person, or for a supervisor that is held up."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.signals.conftest import OWN
from tests.support.harness import UNDER_TEST
from tests.support.signal_lab import Lab, python
from tests.support.waiting import PATIENCE_S, Reader, await_that, reader

ASK = (
    "name: ask, signals: [34, 35, KILL], target: [siblings, session], decision: approve, "
    "message: a neighbour"
)


class Agent:
    def __init__(self, lab: Lab, program: Path) -> None:
        self.lab = lab
        lab.under(OWN, ASK)
        line = python(program, lab.boxes)
        self.process = lab.subject.start("--approvals", "control", "--", *line)
        self._said: Reader = reader(self.process.stdout)
        self.pids = self.next()

    def order(self, *words: object) -> None:
        self.process.say(json.dumps(words).encode() + b"\n")

    def next(self) -> Any:
        return json.loads(self._said.line())

    def do(self, *words: object) -> Any:
        self.order(*words)
        return self.next()

    def await_questions(self, count: int) -> list[str]:
        asked = partial(self.lab.subject.events, "approval_requested")
        await_that(lambda: len(asked()) == count)
        return [event.payload["approval_id"] for event in asked()]

    def sigwrap(self, *words: str) -> str:
        """From outside, as the session's user."""
        done = self.lab.subject.native(UNDER_TEST, *words)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()

    def end(self) -> Any:
        """What COMMAND says at last: the agent's status, and what has reached the sibling."""
        last = self.do("quit")
        while last == "end":
            last = self.next()
        assert self.process.wait(PATIENCE_S) == 0
        return last


@pytest.fixture
def agent(users_lab: Lab, programs: Path) -> Agent:
    return Agent(users_lab, programs / "obeys.py")


def test_answers_come_while_others_go_on(agent: Agent) -> None:
    agent.order("later", "sibling", 34)
    agent.order("later", "sibling", 35)
    first, second = agent.await_questions(2)
    assert agent.do("send", "child", 34) == ["sent", "child", 34, 0]
    listed = json.loads(agent.sigwrap("approvals", "--json"))["requests"]
    assert sorted(each["id"] for each in listed) == sorted((first, second))
    assert {each["message"] for each in listed} == {"a neighbour"}
    said = {}
    for verdict, request in (("deny", first), ("approve", second)):
        agent.sigwrap(verdict, request)
        _, _, number, result = agent.next()
        said[verdict] = (number, result)
    assert said["deny"][1] == "EPERM" and said["approve"][1] == 0
    status, arrived = agent.end()
    assert status == 0
    assert [each["signal"] for each in arrived] == [said["approve"][0]]
    kinds = [(each["type"], each["target_type"]) for each in agent.lab.payloads()]
    assert ("signal_approved", "siblings") in kinds and ("signal_blocked", "siblings") in kinds


@pytest.mark.parametrize("answered", [True, False])
def test_a_sender_whose_other_thread_execs_meanwhile(agent: Agent, answered: bool) -> None:
    agent.order("later", "sibling", 34)
    (request,) = agent.await_questions(1)
    assert agent.do("exec") == "execed"
    if answered and request in agent.sigwrap("approvals"):  # which may be over by the next line
        agent.lab.subject.native(UNDER_TEST, "approve", request)
    assert agent.next() == [0, []]  # nothing reaches the sibling in the name of what is gone
    assert agent.process.wait(PATIENCE_S) == 0
    assert "signal_approved" not in [each["type"] for each in agent.lab.payloads()]
