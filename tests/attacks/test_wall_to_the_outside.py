"""A wall of the kernel's own stands under every policy, and nobody notices it who only asks."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.signal_lab import Lab, Outsider, python
from tests.support.waiting import await_state

OWN = "name: own, signals: ['@all'], target: session, decision: allow"
ONE_OUTSIDE = "name: out, signals: [WINCH], target: user, decision: allow"
# With CAP_PERFMON.
PAST_ANY_WALL = ("environ", "auxv", "maps", "smaps", "pagemap")


def _pids(process: int, thread: int = 0) -> tuple[int, int, int]:
    return process, thread or process, os.getpgid(process)


@contextlib.contextmanager
def _zombie() -> Iterator[int]:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    try:
        await_state(pid, "Z")
        yield pid
    finally:
        os.waitpid(pid, 0)


@contextlib.contextmanager
def _thread() -> Iterator[int]:
    done = threading.Event()
    thread = threading.Thread(target=done.wait)
    thread.start()
    try:
        assert thread.native_id is not None
        yield thread.native_id
    finally:
        done.set()
        thread.join()


def _gone() -> int:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return pid


@pytest.mark.parametrize("rules", [(OWN,), (OWN, ONE_OUTSIDE)], ids=["inside", "one outside"])
def test_a_question_is_answered_as_it_is_without_sigwrap(
    users_lab: Lab, rules: tuple[str, ...], programs: Path
) -> None:
    """Else a server that runs is taken for one that has ended, and its pid file for a stale one."""
    lab = users_lab.under(*rules)
    outside = lab.outsider()
    others = lab.outsider("other", user=1 if os.getuid() == 0 else -1)
    with _zombie() as zombie, _thread() as thread:
        asked = {
            "outside": _pids(outside.pid),
            "another user's": _pids(others.pid),
            "zombie": _pids(zombie),
            "thread": _pids(os.getpid(), thread),
            "init": (1, 1, 0),
            "gone": (_gone(),) * 3,
        }
        line = python(programs / "asks_after_others.py", json.dumps(asked))
        natively = json.loads(lab.subject.native(*line).stdout)
        done = lab.subject.run("--", *line)
    assert json.loads(done.stdout) == natively, done.stderr
    assert natively["outside"]["kill native"] == 0
    assert lab.payloads() == []


def _tells(lab: Lab, program: Path, outsider: Outsider) -> dict[str, dict[str, Any]]:
    done = lab.subject.run("--", *python(program, json.dumps({"outside": outsider.pid})))
    told: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return told


@pytest.mark.parametrize("policy", ["agent-observe", "agent-default", "ci", "own"])
def test_nothing_is_taken_from_whoever_is_outside(
    users_lab: Lab, policy: str, programs: Path
) -> None:
    lab = users_lab.under(OWN, ONE_OUTSIDE)
    if policy != "own":
        lab.subject.policy = policy
    told = _tells(lab, programs / "takes_from_others.py", lab.outsider())
    assert set(told) == {"supervisor", "front", "starter", "outside"}
    is_root = os.getuid() == 0 and lab.subject.user is None
    for name, found in told.items():
        if is_root or name in ("starter", "outside"):
            found.pop("clear_refs")  # it belongs to the user; sigwrap's own are not dumpable
        if is_root:
            for each in PAST_ANY_WALL:
                found.pop(each)
        assert set(found.values()) <= {"EPERM", "EACCES"}, (name, found)
    (started,) = lab.subject.events("session_started")
    assert "signal_wall" in started.payload["capabilities"]


def test_what_a_policy_lets_out_goes_out_as_it_was_sent(users_lab: Lab, programs: Path) -> None:
    """Beyond the wall the supervisor sends it, with what the sender wrote into it."""
    lab = users_lab.under(OWN, "name: out, signals: [SIGRTMIN+2], target: user, decision: allow")
    outside = lab.outsider()
    text = (
        "import sys\npid = int(sys.argv[1])\ninfo = low(siginfo(0, code=-4))\n"
        "tell([native(62, pid, 36), native(129, pid, 36, info), native(62, pid, 12)])"
    )
    assert lab.tells(text, outside.pid) == [0, 0, -1]
    codes = [each["code"] for each in outside.arrived()]
    assert codes == [-1, -4]
    sent = [(each["syscall"], each["target_type"]) for each in lab.payloads("signal_sent")]
    assert sent == [("kill", "user"), ("rt_sigqueueinfo", "user")]


def test_nobody_makes_sigwrap_the_first_to_be_killed_where_memory_runs_short(
    users_lab: Lab,
) -> None:
    """Its files in /proc are root's: it is not dumpable. No wall is in the way of root."""
    lab = users_lab.under(OWN)
    text = (
        "supervisor = os.getppid()\n"
        "stat = open(f'/proc/{supervisor}/stat').read()\n"
        "front = int(stat.rpartition(')')[2].split()[1])\n"
        "def writable(pid):\n"
        "    return os.access(f'/proc/{pid}/oom_score_adj', os.W_OK)\n"
        "tell([writable(supervisor), writable(front), writable(os.getpid())])"
    )
    is_root = os.getuid() == 0 and lab.subject.user is None
    assert lab.tells(text) == [is_root, is_root, True]
