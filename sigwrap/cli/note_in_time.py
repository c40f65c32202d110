"""Prints a line of a run or of the page, without waiting for the reader of standard error."""

from __future__ import annotations

import os
import select

from sigwrap.bare import suppress
from sigwrap.cli.output import noted
from sigwrap.kernel import terminals

_ROOM_WITHIN_S = 0.25


def note_in_time(*lines: str) -> None:
    for line in lines:
        write_in_time(2, noted(line, "sigwrap"), _ROOM_WITHIN_S)


def write_in_time(fd: int, line: bytes, within_s: float) -> None:
    """Write a line, which is dropped if there is no room in time."""
    held = terminals.same_as(fd)
    if held is not None:
        terminals.write_all(held, terminals.with_returns(held, line), within_s=within_s)
        return
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    with suppress(OSError):
        if poll.poll(within_s * 1000):
            os.write(fd, line)
