"""Descriptors and memory of another process: judged as tracing it, and never more than the kernel
would let the caller."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.signal_lab import Lab

OWN = "name: own, signals: ['@all'], target: [self, children, descendants], decision: allow"
EVERYTHING = "name: every, signals: ['@all'], decision: allow"
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root")


def test_it_is_judged_as_tracing(users_lab: Lab, programs: Path) -> None:
    lab = users_lab.under(OWN)
    told, odd = lab.tells(programs / "takes_descriptors.py", lab.outsider().pid)
    own = [["taken"], [8, "EFAULT"]]  # it reads, and what is to be written is read only
    assert told.pop("child") == told.pop("self") == own
    assert sorted(told) == ["neighbour", "outside", "supervisor"]
    for taken, reached in told.values():
        assert set(taken) == set(reached) == {"EPERM"}
    assert odd == ["EBADF", "EINVAL", "EBADF", "EBADF", "ESRCH"]
    blocked = {
        (each["syscall"], each["target_type"], each["rule_name"])
        for each in lab.payloads("signal_blocked")
    }
    for name in ("pidfd_getfd", "process_vm_readv", "process_vm_writev"):
        assert (name, "siblings", "builtin:default") in blocked
        assert (name, "user", "builtin:ptrace") in blocked
        assert (name, "parent", "builtin:sigwrap") in blocked


def test_no_policy_lets_it_reach_the_outside(users_lab: Lab, programs: Path) -> None:
    lab = users_lab.under(EVERYTHING)
    told, _ = lab.tells(programs / "takes_descriptors.py", lab.outsider().pid)
    for taken, reached in (told["outside"], told["supervisor"]):
        assert set(taken) == set(reached) == {"EPERM"}


@needs_root
def test_who_gave_up_root_takes_nothing_from_root(lab: Lab, programs: Path) -> None:
    """The supervisor takes it, and is root."""
    lab.under(EVERYTHING)
    assert lab.tells(programs / "takes_as_others.py") == "EPERM"
