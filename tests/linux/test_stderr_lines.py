"""sigwrap's own lines are written in order, and nothing waits for a standard error that is held."""

from __future__ import annotations

import _thread
import os
import socket
import subprocess
import tty
from pathlib import Path
from queue import SimpleQueue

import pytest

from sigwrap.cli.note_in_time import write_in_time
from sigwrap.kernel import terminals
from sigwrap.kernel.file_state import note_first_devices
from sigwrap.kernel.terminals import Line, OwnLines, prepare_to_write
from tests.support.waiting import Pipe


def test_lines_are_written_in_order() -> None:
    written = list[str]()
    lines = OwnLines(written.append)
    for number in range(100):
        lines.tell(str(number))
    lines.flush()
    assert written == [str(number) for number in range(100)]


def test_nothing_waits_for_a_write(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: SimpleQueue[str] = SimpleQueue()
    with Pipe() as stuck:

        def write(line: str) -> None:
            begun.put(line)
            os.read(stuck.reading, 1)

        lines = OwnLines(write)
        lines.tell("one")
        lines.tell("two")
        assert begun.get() == "one"
        with monkeypatch.context() as patched:
            patched.setattr(terminals, "_FLUSHED_WITHIN_S", 0.01)
            lines.flush()
        assert begun.empty()
        stuck.let_go()
        lines.flush()
        assert begun.get() == "two"


def test_a_line_is_written_where_no_thread_is_to_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    written = list[str]()
    monkeypatch.setattr(_thread, "start_new_thread", refuse)
    lines = OwnLines(written.append)
    lines.tell("one")
    lines.flush()
    assert written == ["one"]


def test_a_closed_reader_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    write_in_time(writing, b"a line\n", 0.0)
    os.close(writing)


def _line_on(fd: int) -> None:
    with subprocess.Popen(["sleep", "60"], stderr=fd) as process:
        line = Line(process.pid, "a line", off_terminals=", and why")
        process.kill()
    line.write()
    line.close()


def test_a_line_for_a_process_is_written_on_all_that_takes_it_at_once(tmp_path: Path) -> None:
    note_first_devices()
    prepare_to_write()
    reading, writing = os.pipe()
    one, other = socket.socketpair()
    master, slave = os.openpty()
    tty.setraw(slave)
    file = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    with one, other:
        for fd in (writing, other.fileno(), file, slave):
            _line_on(fd)
        assert os.read(reading, 100) == one.recv(100) == b"a line, and why\n"
        assert os.pread(file, 100, 0) == b"a line, and why\n"
        assert os.read(master, 100) == b"a line\r\n"
    os.set_blocking(writing, False)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(writing, bytes(4096))
    os.set_blocking(writing, True)
    _line_on(writing)  # it is full: nothing is written, and nothing waits
    for fd in (reading, writing, file, master, slave):
        os.close(fd)
