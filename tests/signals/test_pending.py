"""While a request waits: for a person, or for a supervisor that is held up."""

from __future__ import annotations

import json
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
    def __init__(self, lab: Lab, program: Path, *options: str, ask: str = ASK) -> None:
        self.lab = lab
        lab.under(OWN, ask)
        line = python(program, lab.boxes)
        self.process = lab.subject.start("--approvals", "control", *options, "--", *line)
        self._said: Reader = reader(self.process.stdout)
        self.pids = self.next()

    def order(self, *words: object) -> None:
        self.process.say(json.dumps(words).encode() + b"\n")

    def next(self) -> Any:
        return json.loads(self._said.line())

    def do(self, *words: object) -> Any:
        self.order(*words)
        return self.next()

    def asked(self) -> list[str]:
        events = self.lab.subject.events("approval_requested")
        return [event.payload["approval_id"] for event in events]

    def await_questions(self, count: int) -> list[str]:
        await_that(lambda: len(self.asked()) == count)
        return self.asked()

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


@pytest.mark.parametrize("verdict", ["approve", "deny"])
def test_the_owner_of_a_descriptor_may_be_asked_about(agent: Agent, verdict: str) -> None:
    agent.order("own", "sibling")
    (request,) = agent.await_questions(1)
    agent.sigwrap(verdict, request)
    wanted = [0, True] if verdict == "approve" else ["EPERM", False]
    assert agent.next() == ["own", *wanted]
    assert agent.end() == [0, []]


def test_nobody_answers_in_time(users_lab: Lab, programs: Path) -> None:
    agent = Agent(users_lab, programs / "obeys.py", "--approval-timeout", "0.2")
    assert agent.do("send", "sibling", 34) == ["sent", "sibling", 34, "EPERM"]
    assert agent.end() == [0, []]
    assert len(users_lab.subject.events("approval_expired")) == 1


def test_always_is_no_yes_to_another_of_that_name(users_lab: Lab, programs: Path) -> None:
    """A session starts what it likes, and calls it as it likes."""
    outside = users_lab.outsider()
    ask = "name: ask, signals: [34], decision: approve"
    agent = Agent(users_lab, programs / "obeys.py", ask=ask)
    agent.order("later", "sibling", 34)
    (first,) = agent.await_questions(1)
    agent.sigwrap("approve", first, "--always")
    assert agent.next() == ["later", "sibling", 34, 0]
    assert agent.do("send", "sibling", 34) == ["sent", "sibling", 34, 0]
    agent.order("later", outside.pid, 34)
    *_, third = agent.await_questions(3)
    assert f"SIGRTMIN to {outside.pid} (" in (listed := agent.sigwrap("approvals"))
    assert "), outside the session\n" in listed
    agent.sigwrap("deny", third)
    assert agent.next() == ["later", outside.pid, 34, "EPERM"]
    status, arrived = agent.end()
    assert (status, len(arrived)) == (0, 2)
    assert outside.arrived() == []


def test_a_sender_that_dies_meanwhile_asks_no_longer(agent: Agent) -> None:
    agent.order("child", "sibling", 34)
    _, pid = agent.next()
    agent.await_questions(1)
    assert agent.do("end", pid) == ["ended", 9]
    assert agent.end() == [0, []]


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
