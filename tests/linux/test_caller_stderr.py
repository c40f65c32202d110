from __future__ import annotations

import os

from sigwrap.linux.caller_stderr import write_in_time


def test_a_closed_reader_is_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    write_in_time(writing, b"a line\n", 0.0)
    os.close(writing)
