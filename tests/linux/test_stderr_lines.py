"""sigwrap's own lines are written in order, and nothing waits for a standard error that is held."""

from __future__ import annotations

import _thread
import os
from queue import SimpleQueue

import pytest

from sigwrap.kernel import terminals
from sigwrap.kernel.terminals import OwnLines, write_in_time
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
