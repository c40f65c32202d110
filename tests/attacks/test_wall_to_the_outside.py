"""A wall of the kernel's own stands under every policy, and nobody notices it who only asks."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import struct
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sigwrap.kernel.process import children
from tests.support.signal_lab import Lab, python
from tests.support.waiting import await_state, await_that

OWN = "name: own, signals: ['@all'], target: session, decision: allow"
ONE_OUTSIDE = "name: out, signals: [WINCH], target: user, decision: allow"
# With CAP_PERFMON.
PAST_ANY_WALL = ("environ", "auxv", "maps", "smaps", "pagemap")


def _pids(process: int, thread: int = 0) -> tuple[int, int, int]:
    return process, thread or process, os.getpgid(process)


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


@pytest.mark.parametrize("rules", [(OWN,), (OWN, ONE_OUTSIDE)], ids=["inside", "one outside"])
def test_a_question_is_answered_as_it_is_without_sigwrap(
    users_lab: Lab, rules: tuple[str, ...], programs: Path
) -> None:
    """Else a server that runs is taken for one that has ended, and its pid file for a stale one."""
    lab = users_lab.under(*rules)
    outside = lab.outsider()
    others = lab.outsider("other", user=1 if os.getuid() == 0 else -1)
    gone = subprocess.Popen(["true"])
    gone.wait()
    with subprocess.Popen(["true"]) as zombie, _thread() as thread:
        await_state(zombie.pid, "Z")
        asked = {
            "outside": _pids(outside.pid),
            "another user's": _pids(others.pid),
            "zombie": _pids(zombie.pid),
            "thread": _pids(os.getpid(), thread),
            "init": (1, 1, 0),
            "gone": (gone.pid,) * 3,
        }
        line = python(programs / "asks_after_others.py", json.dumps(asked))
        natively = json.loads(lab.subject.native(*line).stdout)
        done = lab.subject.run("--", *line)
    assert json.loads(done.stdout) == natively, done.stderr
    assert natively["outside"]["kill native"] == 0
    assert lab.payloads() == []


@pytest.mark.parametrize("policy", ["agent-observe", "agent-default", "ci", "own"])
def test_nothing_is_taken_from_whoever_is_outside(
    users_lab: Lab, policy: str, programs: Path
) -> None:
    lab = users_lab.under(OWN, ONE_OUTSIDE)
    if policy != "own":
        lab.subject.policy = policy
    outside = json.dumps({"outside": lab.outsider().pid})
    done = lab.subject.run("--", *python(programs / "takes_from_others.py", outside))
    told: dict[str, dict[str, Any]] = json.loads(done.stdout)
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


# Whoever joins a pid namespace outside has its init for a parent, and outlives the session.

_AT_EMPTY_PATH = 0x1000
_HANDLE = struct.Struct("Ii128s")


@contextlib.contextmanager
def _namespaces_outside(lab: Lab) -> Iterator[list[int]]:
    """Of a process of the same user: a browser's sandbox, a rootless container."""
    line = [*lab.subject.as_user(), "unshare", "-U", "-r", "-p", "-f", "sleep", "1000"]
    process = lab.subject.start_line(line)
    await_that(lambda: bool(process.poll() is not None or children(process.pid)))
    if process.poll() is not None:
        pytest.skip("needs user namespaces for everybody")
    (inside,) = children(process.pid)
    opened = [os.open(f"/proc/{inside}/ns/{kind}", os.O_RDONLY) for kind in ("user", "pid")]
    try:
        yield opened
    finally:
        for fd in opened:
            os.close(fd)
        with contextlib.suppress(ProcessLookupError):
            os.kill(inside, 9)


def _handle(fd: int) -> str:
    """Empty where the kernel has none for namespaces."""
    buffer = ctypes.create_string_buffer(_HANDLE.pack(128, 0, b""))
    mount = ctypes.c_int()
    libc = ctypes.CDLL(None)
    libc.name_to_handle_at(fd, b"", buffer, ctypes.byref(mount), _AT_EMPTY_PATH)
    return buffer.raw.hex()


def test_no_namespace_of_anybody_outside_is_joined(users_lab: Lab, programs: Path) -> None:
    with _namespaces_outside(users_lab) as (user, pid):
        program = programs / "joins_namespaces.py"
        line = python(program, user, pid, _handle(user), _handle(pid))
        natively = json.loads(users_lab.subject.native(*line, pass_fds=(user, pid)).stdout)
        done = users_lab.subject.run("--", *line, pass_fds=(user, pid))
    told = json.loads(done.stdout)
    assert natively["native"]["pid"] == 0
    assert told.pop("of its own") == natively.pop("of its own") == 0
    for abi, found in told.items():
        assert found.pop("nobody's network") == "EBADF"
        assert found.pop("by handle") == ["EPERM"] * 2
        assert set(found.values()) == {"EPERM"}, (abi, found)
