"""The one place that prints."""

from __future__ import annotations

import os

from sigwrap.escape import printable

_ROOM_WITHIN_S = 0.25


def out(text: str) -> None:
    _write(1, text + "\n")


def note(text: str, program: str = "sigwrap") -> None:
    for line in text.splitlines():
        try:
            _write(2, f"{program}: {printable(line.expandtabs(4))}\n")
        except OSError:
            return  # stderr is closed, or its reader is


def note_in_time(text: str) -> None:
    """In a run, which has to go on whoever reads its standard error, or doesn't."""
    from sigwrap.linux import caller_stderr  # a run has it, other commands do without

    for line in text.splitlines():
        data = f"sigwrap: {line}\n".encode("utf-8", "backslashreplace")
        caller_stderr.write_in_time(2, data, _ROOM_WITHIN_S)


def _write(fd: int, text: str) -> None:
    out_bytes(text.encode("utf-8", "backslashreplace"), fd)


def out_bytes(data: bytes, fd: int = 1) -> None:
    # Unbuffered: sigwrap forks, and each process would write its copy of a buffer.
    while data:
        data = data[os.write(fd, data) :]
