"""process_madvise can push out the memory of another process, which has to be read again then:
judged as what slows it down. CAP_PERFMON gets by the Landlock domain, so it must hold alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.signal_lab import Lab

OWN = "name: own, signals: ['@all'], target: [self, children, descendants], decision: allow"
EVERYTHING = "name: every, signals: ['@all'], decision: allow"
needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root")
PAGE = 4096


def test_it_is_judged_as_a_stop_of_whom_it_names(users_lab: Lab, programs: Path) -> None:
    lab = users_lab.under(OWN)
    told = lab.tells(programs / "advises_on_memory.py", lab.outsider().pid)
    for name in ("front", "supervisor", "outside", "neighbour"):
        assert told[name] == [["EPERM"], ["EPERM"]], name
    assert told["self"] == [[PAGE], [PAGE]]
    is_root = os.getuid() == 0 and lab.subject.user is None
    assert told["child"] == ([[PAGE], [PAGE]] if is_root else [["EPERM"], ["EPERM"]])
    assert told["by a number"] in ([PAGE], ["EINVAL"], ["EBADF"])  # before Linux 6.13 and 6.15
    ended, no_pidfd = ["ESRCH", "ESRCH"], ["EBADF", "EBADF", "EBADF"]
    in_memory = ["EINVAL", "EINVAL", "EFAULT", "ENOMEM", 0, 2 * PAGE]
    assert told["odd"] == [*ended, *no_pidfd, *in_memory]
    blocked = {
        (each["syscall"], each["target_type"], each["signal_name"], each["rule_name"])
        for each in lab.payloads("signal_blocked")
    }
    assert blocked == {
        ("process_madvise", "parent", "SIGSTOP", "builtin:sigwrap"),
        ("process_madvise", "user", "SIGSTOP", "builtin:default"),
        ("process_madvise", "siblings", "SIGSTOP", "builtin:default"),
    }
    assert {each["target_type"] for each in lab.payloads("signal_sent")} == {"children"}


@needs_root
def test_a_pidfd_that_is_swapped_meanwhile_reaches_nobody_else(lab: Lab, programs: Path) -> None:
    lab.under(OWN)
    # Of the caller itself that page is none; of the supervisor it would be advised on.
    assert set(lab.tells(programs / "advises_while_it_is_swapped.py")) <= {"ENOMEM", "EPERM"}


@needs_root
def test_who_gave_up_root_reaches_nobody_of_root(lab: Lab, programs: Path) -> None:
    lab.under(EVERYTHING)
    assert lab.tells(programs / "advises_as_others.py") == ["EPERM", PAGE]
