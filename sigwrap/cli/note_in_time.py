"""Prints a line of a run or of the page, without waiting for the reader of standard error."""

from __future__ import annotations

from sigwrap.cli.output import noted
from sigwrap.kernel import terminals

_ROOM_WITHIN_S = 0.25


def note_in_time(*lines: str) -> None:
    for line in lines:
        terminals.write_in_time(2, noted(line, "sigwrap"), _ROOM_WITHIN_S)
