"""Every call to every target: what reaches the target, what the sender is told and whom the event
names. One session walks through all of it for each way in which a decision is carried out: by the
kernel, by the supervisor, by nobody."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from sigwrap.machine import IS_X86_64
from tests.support.harness import NOBODY
from tests.support.signal_lab import Lab

EVENT = {"allow": "signal_sent", "redirect": "signal_redirected", "absorb": "signal_absorbed"}
TARGET_TYPE = {
    "self": "self",
    "thread": "self",
    "child": "children",
    "grandchild": "descendants",
    "zombie": "children",
    "sibling": "siblings",
    "middle": "ancestors",
    "cousin": "peers",
    "root": "root",
    "front": "parent",
    "supervisor": "parent",
    "outer": "parent",
    "outside": "user",
    "other": "external",
}
GROUPS = {
    "group-0": ("self", "child", "grandchild", "zombie"),
    "own-group": ("self", "child", "grandchild", "zombie"),
    "sigwraps-group": ("sibling", "middle", "cousin", "root", "front", "supervisor"),
}
SI_USER, SI_QUEUE = 0, -1  # glibc shows a thread's SI_TKILL as SI_USER
CODE = {"kill": SI_USER, "tkill": SI_USER, "tgkill": SI_USER}
BAD = {
    "signal 65": "EINVAL",
    "signal -1": "EINVAL",
    "signal 65, i386": "EINVAL" if IS_X86_64 else "ENOSYS",
    "signal 65, pidfd": "EINVAL",
    "pid": "ESRCH",
    "group": "ESRCH",
    "lowest": "ESRCH",
    "tkill 0": "EINVAL",
    "tkill -1": "EINVAL",
    "pidfd -1": "EBADF",
    "pidfd 999": "EBADF",
    "pidfd, unknown flag": "EINVAL",
    "pidfd, two flags": "EINVAL",
    "no pidfd": "EBADF",
}
SIGWRAP = ("front", "supervisor", "outer")
UNSEEN = ("zombie", *SIGWRAP)
"""Nothing can be seen to arrive there."""


@pytest.mark.parametrize("decision", EVENT)
def test_matrix(users_lab: Lab, decision: str, programs: Path) -> None:
    redirect = ", redirect_to: SIGUSR2" if decision == "redirect" else ""
    lab = users_lab.under(f"name: all, signals: ['@all'], decision: {decision}{redirect}")
    outsiders = {"outside": lab.outsider("outside").pid}
    if os.getuid() == 0:
        user = None if lab.subject.user == NOBODY else NOBODY
        outsiders["other"] = lab.outsider("other", user=user).pid
    told = lab.tells(
        programs / "every_call_to_everybody.py",
        lab.boxes,
        json.dumps(outsiders),
        json.dumps({name: list(members) for name, members in GROUPS.items()}),
    )
    pids = told["pids"]
    may_kill_others = lab.subject.user is None
    for row in told["rows"]:
        expected = _expected(row, decision, pids, may_kill_others=may_kill_others)
        assert (row["result"], row["arrived"]) == expected, (row, decision)
    assert all(not found for found in told["late"].values()), told["late"]
    assert told["bad"] == BAD | {"another's thread": 0 if decision == "absorb" else "ESRCH"}
    _check_events(lab, told["rows"], decision, pids)


def _expected(
    row: dict[str, Any], decision: str, pids: dict[str, int], *, may_kill_others: bool
) -> tuple[object, dict[str, list[dict[str, int]]]]:
    name, syscall = row["target"], row["syscall"]
    if name == "everybody":
        return "EPERM", {}
    members = GROUPS.get(name, (name,))
    nothing: dict[str, list[dict[str, int]]] = {member: [] for member in members}
    if name == "gone":
        return "ESRCH", nothing
    if name in SIGWRAP:
        return "EPERM", nothing
    if decision == "absorb":
        return 0, nothing
    if name == "other" and not may_kill_others:
        return "EPERM", nothing
    by_supervisor = syscall == "pidfd_send_signal" or decision == "redirect"
    if name == "sigwraps-group":
        by_supervisor = True  # not all of it may be reached
    if name in ("outside", "other"):
        by_supervisor = True  # beyond Landlock's wall
    code = SI_QUEUE if by_supervisor else CODE.get(syscall, SI_QUEUE)
    number = int(signal.SIGUSR2) if decision == "redirect" else row["signal"]
    one = [{"signal": number, "code": code, "pid": pids["self"]}]
    return 0, {member: [] if member in UNSEEN else one for member in members}


def _check_events(
    lab: Lab, rows: list[dict[str, Any]], decision: str, pids: dict[str, int]
) -> None:
    events = [each for each in lab.payloads() if each["source_pid"] == pids["self"]]
    by_pid = {pid: name for name, pid in pids.items() if name != "thread"}
    for row in rows:
        name = row["target"]
        if name == "gone":
            continue
        members = GROUPS.get(name, (name,))
        if name == "sigwraps-group" and "outer" in pids:
            members = (*members, "outer")
        mine, events = events[: len(members)], events[len(members) :]
        assert len({each["correlation"] for each in mine}) == 1 if name in GROUPS else True
        found = {}
        for event in mine:
            assert event["syscall"] == row["syscall"], (row, event)
            assert event["original_signal"] == row["signal"]
            who = by_pid.get(event["target_pid"], "everybody")
            found[who] = (event["type"], event["rule_name"])
            if who != "everybody":
                assert event["target_type"] == TARGET_TYPE[who], (row, event)
        wanted = {}
        for member in members:
            if member in SIGWRAP:
                wanted[member] = ("signal_blocked", "builtin:sigwrap")
            elif member == "everybody":
                wanted[member] = ("signal_blocked", "builtin:everybody")
            else:
                wanted["self" if member == "thread" else member] = (EVENT[decision], "all")
        assert found == wanted, (row, mine)
    # What is left is what bad numbers left.
    assert {each["rule_name"] for each in events} <= {"builtin:unresolved", "all"}, events


def test_a_group_that_could_come_to_be_is_judged_by_its_process(own: Lab, programs: Path) -> None:
    text = (
        "import socket, sys\nfd = socket.socket(socket.AF_UNIX).fileno()\n"
        "pid = int(sys.argv[1])\n"
        "calls = [(72, 8, -pid), (72, 15, struct.pack('ii', 2, pid)),"
        " (16, 0x8901, struct.pack('i', -pid))]\n"
        "tell([named(native(call, fd, what, whom)) for call, what, whom in calls])"
    )
    assert own.tells(text, own.outsider().pid) == ["EPERM"] * 3
    assert {each["target_type"] for each in own.payloads("signal_blocked")} == {"user"}
