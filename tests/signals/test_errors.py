"""A call that fails, fails with the errno that it has without sigwrap."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.signal_lab import Lab, python


def test_of_two_mistakes_the_kernels_first_is_named(own: Lab, programs: Path) -> None:
    program = programs / "errors.py"
    natively = json.loads(own.subject.native(*python(program)).stdout)
    assert own.tells(program) == natively
    nobody, child = [0, "nobody"], [2, "child"]
    assert natively["owners"] == [nobody, child, child, child, child, nobody]


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
