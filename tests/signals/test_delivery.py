"""An example of what sigwrap is for, unlogged signals, a supervisor held up."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from sigwrap.kernel import landlock, procfs
from tests.signals.conftest import OWN
from tests.support.harness import PYTHON
from tests.support.processes import Roles, children
from tests.support.signal_lab import Lab, python
from tests.support.waiting import PATIENCE_S, await_end, await_state, await_that, reader

NEEDS_DOMAIN = pytest.mark.skipif(not landlock.is_available(), reason="needs a Landlock domain")


# What it is for


@pytest.mark.promise("signal rules")
def test_a_kill_outside_is_a_permission_error(users_lab: Lab) -> None:
    program = "import os\ntry: os.kill(1, 15)\nexcept PermissionError: print('blocked')"
    done = users_lab.subject.run("--", *PYTHON, "-c", program)
    assert (done.returncode, done.stdout) == (0, b"blocked\n")
    assert done.stderr.startswith(b"sigwrap: denied: SIGTERM to 1 (")
    assert b"): outside this session (rule system, policy agent-default)" in done.stderr
    (event,) = users_lab.payloads("signal_blocked")
    how = (event["signal_name"], event["syscall"], event["rule_name"])
    assert how == ("SIGTERM", "kill", "system")
    assert event["source_pid"] == users_lab.subject.command_pid()
    assert (event["target_pid"], event["target_cmd"]) == (1, procfs.comm(1))


def _is_in_one_of(calls: tuple[str, ...], pid: int) -> bool:
    return Path(f"/proc/{pid}/syscall").read_text().startswith(calls)


# Noise


@contextmanager
def _held_up(pid: int) -> Iterator[None]:
    """The front would continue a supervisor that somebody stops, so it is stopped first."""
    roles = Roles.of(pid)
    both = (roles.front, roles.supervisor)
    try:
        for each in both:
            os.kill(each, signal.SIGSTOP)
            await_state(each, "T")
        yield
    finally:
        # The front last: it continues the supervisor too, and all may be over before we come to it.
        for each in reversed(both):
            os.kill(each, signal.SIGCONT)


NOISE = "name: noise, signals: ['@ignore'], decision: allow, log: false"
NOISE_INSIDE = f"{NOISE}, target: session"


@NEEDS_DOMAIN
def test_noise_costs_nothing_and_asks_nobody(users_lab: Lab, programs: Path) -> None:
    """The supervisor stands still, and the calls return."""
    lab = users_lab.under(NOISE_INSIDE, OWN)
    process = lab.subject.start("--", *python(programs / "noise.py"))
    said = reader(process.stdout)
    assert json.loads(said.line()) == "ready"
    with _held_up(process.pid):
        process.say(b"go\n")
        assert json.loads(said.line()) == "quiet"
    assert json.loads(said.line()) == "loud"
    assert process.wait(PATIENCE_S) == 0
    assert [each["signal"] for each in lab.payloads()] == [9]


def test_no_noise_reaches_sigwrap_or_everybody(users_lab: Lab, programs: Path) -> None:
    """What is built in comes before any rule, also before one that is not worth a line."""
    lab = users_lab.under("name: noise, signals: ['@all'], decision: allow, log: false")
    number = int(signal.SIGCONT)  # harms nobody, if it should be let through
    assert lab.tells(programs / "continues_sigwrap.py", number) == ["EPERM"] * 13
    rules = [each["rule_name"] for each in lab.payloads("signal_blocked")]
    assert rules == ["builtin:sigwrap"] * 12 + ["builtin:everybody"]


@pytest.mark.fault(
    "front process and supervisor",
    "SIGSTOP and SIGCONT to both",
    sees="pending calls wait, then go on",
    keeps="complete",
)
def test_a_supervisor_that_is_held_up_holds_up_the_call(lab: Lab, programs: Path) -> None:
    lab.under(OWN)
    process = lab.subject.start("--", *python(programs / "kills_when_told.py"))
    said = reader(process.stdout)
    said.line()
    command = lab.subject.command_pid()
    with _held_up(process.pid):
        process.say(b"go\n")
        await_that(lambda: Path(f"/proc/{command}/syscall").read_text().startswith("62 "))
        (child,) = children(command)
        await_state(child, "S")  # it lives, and comes to its sleep
    assert json.loads(said.line()) == 9
    assert process.wait(PATIENCE_S) == 0


@pytest.mark.fault(
    "callers",
    "the caller is killed during a decision",
    sees="its call does not happen",
    keeps="only what happened",
)
def test_a_sender_that_dies_while_it_waits_sends_nothing(users_lab: Lab, programs: Path) -> None:
    """By pidfd, which the supervisor carries out itself, and by number."""
    lab = users_lab.under("name: all, signals: ['@all'], target: session, decision: allow")
    process = lab.subject.start("--", *python(programs / "senders_that_wait.py", lab.boxes))
    said = reader(process.stdout)
    pids = [json.loads(said.line()) for _ in range(2)]
    calls = ("62 ", "424 ")
    with _held_up(process.pid):
        for _ in pids:
            process.say(b"go\n")
        for pid in pids:
            await_that(partial(_is_in_one_of, calls, pid))
            os.kill(pid, signal.SIGKILL)
            await_end(pid)
    process.say(b"go\n")
    assert json.loads(said.line()) == [[9, 9], []]
    assert process.wait(PATIENCE_S) == 0
    assert lab.payloads() == []
