"""The stub alone, with a test in the place of the supervisor."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from sigwrap.record import ERROR, EXIT, EXIT_STATUS, READY
from tests.support.harness import Sigwrap
from tests.support.waiting import PATIENCE_S, Watch, reader


class Supervisor(NamedTuple):
    """The test's socket to the stub, and its ends of the stub's pipes."""

    end: socket.socket
    pipes: tuple[int, int, int]


@contextmanager
def stub_alone(
    programs: Path, *, is_ready: bool = True
) -> Iterator[tuple[Supervisor, subprocess.Popen[bytes], int]]:
    """The third is its command's pid."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    fd = theirs.fileno()
    words = [sys.executable, "-I", str(programs / "stub_alone.py"), str(fd)]
    pipe = subprocess.PIPE
    (given, to_us), (out, to_out), (err, to_err) = os.pipe(), os.pipe(), os.pipe()
    with ours, subprocess.Popen(words, pass_fds=[fd], stdin=pipe, stdout=pipe, stderr=pipe) as stub:
        theirs.close()
        command = int(reader(stub.stdout).line())
        if is_ready:
            socket.send_fds(ours, [READY], [to_us, out, err])
        for each in (to_us, out, err):
            os.close(each)
        try:
            yield Supervisor(ours, (given, to_out, to_err)), stub, command
        finally:
            for each in (given, to_out, to_err):
                os.close(each)


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (b"", b"the supervisor is gone"),
        (b"\xff", b"the supervisor is gone"),
        (READY, b"the supervisor is gone"),
        (ERROR + b"the event log can't be written", b"the event log can't be written"),
    ],
)
@pytest.mark.parametrize("is_ready", [True, False])
def test_whatever_it_hears_it_ends_with_a_line(
    said: bytes, line: bytes, programs: Path, is_ready: bool
) -> None:
    alone = stub_alone(programs, is_ready=is_ready)
    with alone as (supervisor, stub, command), Watch([command]) as watch:
        if said:
            supervisor.end.sendall(said)
        supervisor.end.shutdown(socket.SHUT_WR)
        _, err = stub.communicate(timeout=PATIENCE_S)
        watch.await_ends()
    assert stub.returncode == 126
    assert line in err
    assert err.startswith(b"sigwrap-stub: tool: ")
    assert err.count(b"\n") == 1


def test_an_error_is_written_although_the_streams_have_ended(programs: Path) -> None:
    with stub_alone(programs) as (supervisor, stub, command), Watch([command]) as watch:
        os.kill(stub.pid, signal.SIGSTOP)
        supervisor.end.sendall(ERROR + b"a reason")
        for each in supervisor.pipes[1:]:
            os.dup2(supervisor.pipes[0], each)  # closes it
        os.kill(stub.pid, signal.SIGCONT)
        assert stub.communicate(timeout=PATIENCE_S)[1] == b"sigwrap-stub: tool: a reason\n"
        watch.await_ends()


def test_what_was_said_before_the_end_is_written_before_it_ends(programs: Path) -> None:
    with stub_alone(programs) as (supervisor, stub, command):
        os.kill(command, signal.SIGKILL)
        supervisor.end.sendall(EXIT + EXIT_STATUS.pack(-9, 0))
        os.write(supervisor.pipes[1], b"all of it\n")
        for each in supervisor.pipes[1:]:
            os.dup2(supervisor.pipes[0], each)  # closes it
        assert reader(stub.stdout).line() == b"all of it"
        assert stub.wait(PATIENCE_S) == -9


def test_it_is_not_for_people(sigwrap: Sigwrap) -> None:
    program = Path(sigwrap.line()[0].__str__())
    stub = sigwrap.folder / "sigwrap-stub"
    stub.symlink_to(program)
    done = sigwrap.native(str(stub), "/bin/echo", "echo", "ran")
    assert (done.returncode, done.stdout) == (126, b"")
    assert done.stderr.count(b"\n") == 1
