"""What is judged is what it is carried out on, whatever another thread puts in its place."""

from __future__ import annotations

import fcntl
import json
import socket
from pathlib import Path

from tests.support.signal_lab import Lab, python

OWN = "name: own, signals: ['@all'], target: [self, children, descendants], decision: allow"
ONE_OUTSIDE = "name: out, signals: [WINCH], target: user, decision: allow"
ROUNDS = 150


def test_descriptors_that_are_swapped_reach_nobody_else(users_lab: Lab, programs: Path) -> None:
    lab = users_lab.under(OWN, ONE_OUTSIDE)
    outside = lab.outsider()
    one, other = socket.socketpair()
    with one, other:
        fcntl.fcntl(one, fcntl.F_SETOWN, outside.pid)
        line = python(programs / "swaps_what_is_judged.py", ROUNDS, one.fileno())
        done = lab.subject.run("--", *line, pass_fds=(one.fileno(),))
        takes, has_signalled = json.loads(done.stdout)
        assert not fcntl.fcntl(one, fcntl.F_GETFL) & fcntl.FASYNC
    for found in (takes, has_signalled):
        assert found["wanted"] and found["refused"], found  # both were tried
        assert found["wrong"] == 0
    assert outside.lives and outside.arrived() == []
