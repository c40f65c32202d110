"""Whoever isn't the caller's to signal is not the caller's to slow down, starve or watch either."""

from __future__ import annotations

from pathlib import Path

from tests.support.signal_lab import Lab

OWN = "name: own, signals: ['@all'], target: [self, children, descendants], decision: allow"
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


def test_it_is_judged_as_a_signal_to_whom_it_names(users_lab: Lab, programs: Path) -> None:
    """By both ABIs; the kernel itself would ask for the same user only."""
    lab = users_lab.under(OWN)
    told = lab.tells(programs / "slows_others.py", lab.outsider().pid)
    own, child = told.pop("self"), told.pop("child")
    for name, results in told.items():
        assert set(map(tuple, results.values())) == {("EPERM",)}, (name, results)
    every = {
        "setpriority of a user",
        "ioprio_set of a user",
        "perf_event_open of everybody",
        "perf_event_open of a control group",
    }
    for name in every:
        assert own[name] == child[name] == ["EPERM"]
    # The group that sigwrap was started in has sigwrap in it.
    assert own["setpriority of a group"] == own["ioprio_set of a group"] == ["EPERM"]
    for name, result in child.items():
        if name not in every:
            assert "EPERM" not in result, (name, child)
    for name, result in own.items():
        if name not in every and not name.endswith("of a group"):
            assert result == child[name], (name, own)
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
    assert {each["target_type"] for each in lab.payloads("signal_sent")} == {"children"}
