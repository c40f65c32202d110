"""Whoever closes a socket last may have to wait; the supervisor takes sockets, and doesn't."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.harness import UNDER_TEST
from tests.support.signal_lab import Lab, python
from tests.support.waiting import PATIENCE_S, await_that, reader

ASK = "name: ask, signals: ['@all'], target: children, decision: approve"


@pytest.mark.parametrize(("verdict", "result"), [("approve", 0), ("deny", "EPERM")])
def test_a_socket_that_is_closed_while_somebody_is_asked(
    users_lab: Lab, programs: Path, verdict: str, result: object
) -> None:
    lab = users_lab.under(ASK)
    subject = lab.subject
    line = python(programs / "lingers.py")
    process = subject.start("--approvals", "control", "--no-report", "--", *line)
    said = reader(process.stdout)

    def answer(number: int, word: str) -> None:
        def asked() -> list[str]:
            events = subject.events("approval_requested")
            return [event.payload["approval_id"] for event in events]

        await_that(lambda: len(asked()) == number)
        done = subject.native(UNDER_TEST, word, asked()[-1])
        assert done.returncode == 0, done.stderr

    subject.await_event("session_started")
    answer(1, "approve")
    await_that(lambda: len(subject.events("approval_requested")) == 2)
    process.say(b"close it\n")
    assert json.loads(said.line()) == "closed"
    answer(2, verdict)
    process.say(b"run\n")
    assert json.loads(said.line()) == [result, 0]
    process.stdin.close()
    assert process.wait(PATIENCE_S) == 0


def test_a_socket_in_the_queue_of_one_that_is_refused(users_lab: Lab, programs: Path) -> None:
    lab = users_lab.under(ASK)
    line = python(programs / "lingers_in_a_queue.py")
    done = lab.subject.run("--approvals", "control", "--no-report", "--", *line)
    assert (done.returncode, done.stdout) == (0, b"0\n"), done.stderr
