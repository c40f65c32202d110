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

import pytest

from sigwrap.record.frames import Kind, exit_frame, frame
from tests.support.harness import Sigwrap
from tests.support.waiting import PATIENCE_S, Watch, reader


@contextmanager
def stub_alone(programs: Path) -> Iterator[tuple[socket.socket, subprocess.Popen[bytes]]]:
    ours, theirs = socket.socketpair()
    fd = theirs.fileno()
    words = [sys.executable, "-I", str(programs / "stub_alone.py"), str(fd)]
    pipe = subprocess.PIPE
    with ours, subprocess.Popen(words, pass_fds=[fd], stdin=pipe, stdout=pipe, stderr=pipe) as stub:
        theirs.close()
        yield ours, stub


@pytest.mark.parametrize(
    ("said", "line"),
    [
        (b"", b"the supervisor is gone"),
        (b"\xff\0\0\0\0", b"invalid data from the supervisor: unknown frame type 255"),
        (b"\x02\0\x10\0\0", b"invalid data from the supervisor: a frame of 1048576 bytes"),
        (frame(Kind.EXIT, b"\0"), b"a status has 4 bytes"),
        (frame(Kind.STDIN, bytes(7)), b"a count has 8 bytes"),
        (frame(Kind.ERROR, b"the event log can't be written"), b"the event log can't be written"),
        (frame(Kind.READY)[:3], b"the supervisor is gone"),
        (frame(Kind.STDOUT) + frame(Kind.STDOUT, b"x"), b"more data than the window allows"),
    ],
)
def test_whatever_it_hears_it_ends_with_a_line(said: bytes, line: bytes, programs: Path) -> None:
    with stub_alone(programs) as (ours, stub):
        command = int(reader(stub.stdout).line())
        with Watch([command]) as watch:
            ours.sendall(said)
            ours.shutdown(socket.SHUT_WR)
            _, err = stub.communicate(timeout=PATIENCE_S)
            watch.await_ends()
    assert stub.returncode == 126
    assert line in err
    assert err.startswith(b"sigwrap-stub: tool: ")
    assert err.count(b"\n") == 1


def test_what_was_said_before_the_end_is_written_before_it_ends(programs: Path) -> None:
    with stub_alone(programs) as (ours, stub):
        said = reader(stub.stdout)
        os.kill(int(said.line()), signal.SIGKILL)
        ours.sendall(frame(Kind.STDOUT, b"all of it\n") + exit_frame(-9))
        assert said.line() == b"all of it"
        assert stub.wait(PATIENCE_S) == -9


def test_it_is_not_for_people(sigwrap: Sigwrap) -> None:
    program = Path(sigwrap.line()[0].__str__())
    stub = sigwrap.folder / "sigwrap-stub"
    stub.symlink_to(program)
    done = sigwrap.native(str(stub), "/bin/echo", "echo", "ran")
    assert (done.returncode, done.stdout) == (126, b"")
    assert done.stderr.count(b"\n") == 1
