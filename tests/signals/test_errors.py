"""A call that fails, fails with the errno that it has without sigwrap."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.signal_lab import Lab, python

OWN = "name: own, signals: ['@all'], target: [self, children, descendants], decision: allow"


def test_of_two_mistakes_the_kernels_first_is_named(users_lab: Lab, programs: Path) -> None:
    lab = users_lab.under(OWN)
    program = programs / "errors.py"
    natively = json.loads(lab.subject.native(*python(program)).stdout)
    assert lab.tells(program) == natively
    nobody, child = [0, "nobody"], [2, "child"]
    assert natively["owners"] == [nobody, child, child, child, child, nobody]


def test_a_group_that_could_come_to_be_is_judged_by_its_process(
    users_lab: Lab, programs: Path
) -> None:
    lab = users_lab.under(OWN)
    text = (
        "import socket, sys\nfd = socket.socket(socket.AF_UNIX).fileno()\n"
        "pid = int(sys.argv[1])\n"
        "calls = [(72, 8, -pid), (72, 15, struct.pack('ii', 2, pid)),"
        " (16, 0x8901, struct.pack('i', -pid))]\n"
        "tell([named(native(call, fd, what, whom)) for call, what, whom in calls])"
    )
    assert lab.tells(text, lab.outsider().pid) == ["EPERM"] * 3
    assert {each["target_type"] for each in lab.payloads("signal_blocked")} == {"user"}
