"""The process that commands are forked from, and those that it has forked, in the hands of the
session's own."""

from __future__ import annotations

import json
import os
import signal
import socket
from pathlib import Path

import pytest

from sigwrap.kernel import procfs
from sigwrap.kernel.descriptors import take_descriptor
from sigwrap.kernel.process import children
from tests.joined.addresses import JOIN
from tests.support.harness import PYTHON, Sigwrap
from tests.support.waiting import PATIENCE_S, reader

needs_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root")


def test_nothing_is_taken_from_a_fork_before_its_exec(subject: Sigwrap, programs: Path) -> None:
    until = subject.folder / "until"
    line = (*PYTHON, str(programs / "takes_of_the_unborn.py"), str(until))
    takes = subject.start(*JOIN, "--", *line)
    said = reader(takes.stdout)
    said.until(rb"ready")
    for number in range(30):
        assert subject.run(*JOIN, "--", "echo", str(number)).stdout == b"%d\n" % number
    until.touch()
    told = said.until(rb"seen: [^\n]*\n").decode()
    assert takes.wait(PATIENCE_S) == 0
    assert "seen: 0" not in told
    assert "taken: {}" in told, told


def test_a_command_that_calls_itself_so_is_no_copy_of_it(subject: Sigwrap) -> None:
    names = "import ctypes, signal; ctypes.CDLL(None).prctl(15, b'sigwrap-forks', 0, 0, 0)"
    script = f"{names}; print('ready', flush=True); signal.pause()"
    named = subject.start(*JOIN, "--", *PYTHON, "-c", script)
    reader(named.stdout).until(rb"ready")
    (pid,) = children(subject.command_pid())
    assert subject.run(*JOIN, "--", "kill", str(pid)).returncode == 0
    assert named.wait(PATIENCE_S) == 128 + signal.SIGTERM
    assert not subject.events("signal_blocked")


@needs_root
def test_the_supervisor_believes_nothing_of_it_unseen(sigwrap: Sigwrap) -> None:
    """Root has taken its end of the connection, as its debugger would. The supervisor ignores the
    reported end of a running command, and invalid numbers."""
    process = sigwrap.start(*JOIN, "--", "sh", "-c", "echo $$; exec sleep 300")
    pid = int(process.stdout.readline())
    forks = sigwrap.command_pid()
    unseen: tuple[dict[str, int], ...] = (
        {"ended": pid, "status": 10**40, "error": 10**40},
        {"forked": 1, "number": 10**6},
        {"not_forked": 1, "number": 10**6},
        {"ended": 1, "status": 0, "error": 0},
        {"v": 2},
        {},
    )
    with socket.socket(fileno=_end_of_the_line(forks)) as line:
        for said in unseen:
            line.send(json.dumps({"v": 1, **said}).encode())
            line.send(b"no JSON")
            assert sigwrap.run(*JOIN, "--", "echo", "goes on").stdout == b"goes on\n", said
        os.kill(pid, signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 128 + signal.SIGTERM
    assert sigwrap.run(*JOIN, "--", "echo", "goes on").stdout == b"goes on\n"
    assert procfs.stat(forks) is not None
    sigwrap.run("signal", "agent", "SIGKILL")


def _end_of_the_line(pid: int) -> int:
    for each in Path(f"/proc/{pid}/fd").iterdir():
        if os.readlink(each).startswith("socket:"):
            return take_descriptor(pid, int(each.name))
    raise AssertionError("it holds no socket")
