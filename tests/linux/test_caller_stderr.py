from __future__ import annotations

import os
from pathlib import Path

import pytest

from sigwrap.linux.caller_stderr import write_in_time
from tests.support.waiting import Reader


def test_a_full_pipe_costs_no_more_than_its_time() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(writing, b"x" * 4096)
    os.set_blocking(writing, True)
    write_in_time(writing, b"dropped\n", 0.01)
    os.close(writing)
    assert b"dropped" not in Reader(reading).rest()
    os.close(reading)


def test_what_has_room_is_written(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    write_in_time(writing, b"a line\n", 0.0)
    os.close(writing)
    assert Reader(reading).rest() == b"a line\n"
    os.close(reading)
    with open(tmp_path / "file", "ab") as file:
        write_in_time(file.fileno(), b"a line\n", 0.0)
        write_in_time(file.fileno(), b"another\n", 0.0)
    assert (tmp_path / "file").read_bytes() == b"a line\nanother\n"


def test_a_closed_reader_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    write_in_time(writing, b"a line\n", 0.0)
    os.close(writing)
