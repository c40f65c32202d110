"""A process that the caller may not signal, it may not slow down, starve, watch or read either.
Memory and performance counters are judged as tracing, what takes time away as a stop, and limits as
a kill. The filter refuses to take descriptors and to give advice on memory."""

from __future__ import annotations

import fcntl
import json
import socket
from pathlib import Path

import pytest

from tests.support.harness import IS_BINARY, PYTHON
from tests.support.signal_lab import Lab, python
from tests.support.waiting import Reader

OWN = "name: own, signals: ['@all'], target: [self, children, descendants], decision: allow"
ONE_OUTSIDE = "name: out, signals: [WINCH], target: user, decision: allow"
EVERYTHING = "name: every, signals: ['@all'], decision: allow"
NOT_OURS = ("front", "supervisor", "outside", "neighbour")
SLOWING = (
    "setpriority",
    "ioprio_set",
    "sched_setscheduler",
    "sched_setparam",
    "sched_setattr",
    "sched_setaffinity",
    "move_pages",
    "migrate_pages",
)
# The group that sigwrap was started in has sigwrap in it.
OF_A_GROUP = {"setpriority of a group", "ioprio_set of a group"}
OF_EVERYBODY = {
    "setpriority of a user",
    "ioprio_set of a user",
    "perf_event_open of everybody",
    "perf_event_open of a control group",
}
ROUNDS = 150
SIGWRAPS_OWN = 3 if IS_BINARY else 2  # the supervisor, the front process, and what unpacked them
HAS_A_THREAD = """
import os, threading
gate = threading.Event()
thread = threading.Thread(target=gate.wait, daemon=True)
thread.start()
print(os.getpid(), thread.native_id, flush=True)
os.read(0, 1)
"""


@pytest.mark.promise("sigwrap is out of reach")
def test_nobody_is_attacked_but_oneself_and_ones_child(users_lab: Lab, programs: Path) -> None:
    """By both ABIs; the kernel itself would ask for the same user only."""
    lab = users_lab.under(OWN)
    kinds = ("reached", "taken", "advised", "slowed")
    told = lab.tells(programs / "attacks_everybody.py", lab.outsider().pid, *kinds)
    reached, taken, advised, slowed = (told[kind] for kind in kinds)

    for name in (*NOT_OURS, "child", "self"):
        assert taken[name] == advised[name] == ["EPERM"], name
    for name in NOT_OURS:
        assert set(reached[name]) == {"EPERM"}, name
        assert set(map(tuple, slowed[name].values())) == {("EPERM",)}, (name, slowed[name])

    own = [8, "EFAULT"]  # it reads, and what is to be written is read only
    assert reached["child"] == reached["self"] == own

    for name in OF_EVERYBODY:
        assert slowed["self"][name] == slowed["child"][name] == ["EPERM"]
    for name in OF_A_GROUP:
        assert slowed["self"][name] == ["EPERM"]
    for name in set(slowed["child"]) - OF_EVERYBODY:
        assert "EPERM" not in slowed["child"][name], (name, slowed)
        assert slowed["self"][name] == slowed["child"][name] or name in OF_A_GROUP, (name, slowed)

    blocked = {
        (each["syscall"], each["target_type"], each["signal_name"], each["rule_name"])
        for each in lab.payloads("signal_blocked")
    }
    for name in SLOWING:
        assert (name, "parent", "SIGSTOP", "builtin:sigwrap") in blocked
        assert (name, "user", "SIGSTOP", "builtin:default") in blocked
        assert (name, "siblings", "SIGSTOP", "builtin:default") in blocked
    assert ("prlimit64", "parent", "SIGKILL", "builtin:sigwrap") in blocked
    assert ("perf_event_open", "parent", "SIGKILL", "builtin:sigwrap") in blocked
    assert ("perf_event_open", "user", "SIGKILL", "builtin:ptrace") in blocked
    rules = {(syscall, target, rule) for syscall, target, _, rule in blocked}
    for name in ("process_vm_readv", "process_vm_writev"):
        assert (name, "siblings", "builtin:default") in rules
        assert (name, "user", "builtin:ptrace") in rules
        assert (name, "parent", "builtin:sigwrap") in rules
    assert {each["target_type"] for each in lab.payloads("signal_sent")} == {"children"}


def test_no_policy_lets_the_outside_be_read(users_lab: Lab, programs: Path) -> None:
    lab = users_lab.under(EVERYTHING)
    told = lab.tells(programs / "attacks_everybody.py", lab.outsider().pid, "reached")["reached"]
    for name in ("outside", "supervisor", "front"):
        assert set(told[name]) == {"EPERM"}, name


def test_descriptors_that_are_swapped_reach_nobody_else(users_lab: Lab, programs: Path) -> None:
    """What is judged is what it is carried out on, whatever another thread puts in its place."""
    lab = users_lab.under(OWN, ONE_OUTSIDE)
    outside = lab.outsider()
    one, other = socket.socketpair()
    with one, other:
        fcntl.fcntl(one, fcntl.F_SETOWN, outside.pid)
        line = python(programs / "swaps_what_is_judged.py", ROUNDS, one.fileno())
        done = lab.subject.run("--", *line, pass_fds=(one.fileno(),))
        found = json.loads(done.stdout)
        assert not fcntl.fcntl(one, fcntl.F_GETFL) & fcntl.FASYNC
    assert found["wanted"] and found["refused"], found  # both were tried
    assert found["wrong"] == 0
    assert outside.lives and outside.arrived() == []


def test_limits_of_others_by_no_name(users_lab: Lab, programs: Path) -> None:
    """By RLIMIT_CPU the kernel kills, with RLIMIT_NOFILE nothing can be opened any more, and with
    RLIMIT_FSIZE no log be written."""
    lab = users_lab.under(OWN)
    line = [*lab.subject.as_user(), *PYTHON, "-c", HAS_A_THREAD]
    outside = lab.subject.start_line(line)
    pid, thread = Reader(outside.stdout.fileno()).line().split()
    lab.subject.env["ABOVE"] = str(SIGWRAPS_OWN)
    told, namespace = lab.tells(programs / "limits_by_any_name.py", pid.decode(), thread.decode())
    assert len(told) == SIGWRAPS_OWN + 2
    assert all(each == ["EPERM"] for each in told.values()), told
    if namespace is not None:
        number, itself, child, outside_by_number = namespace
        assert (number, itself, child, outside_by_number) == (1, [0], [0], ["ESRCH"])
    limits = Path(f"/proc/{outside.pid}/limits").read_text()
    assert " 2999 " not in limits
    targets = [each["target_type"] for each in lab.payloads("signal_blocked")]
    assert set(targets) == {"parent", "user"}
