"""The one place that prints.

What is said about a word or a file may hold anything, line ends too, so each line of sigwrap's own
is given as one, and escaped as a whole.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from sigwrap.errors import KernelError
from sigwrap.escape import bounded, printable

_ROOM_WITHIN_S = 0.25
_PIECE = 1 << 15


def out(text: str) -> None:
    """A text that was made for a terminal, line by line: what is hostile in it is escaped."""
    _write(text + "\n")


def out_lines(lines: Iterable[str]) -> None:
    """Of any number: written as they come, in pieces of some length."""
    waiting: list[str] = []
    size = 0
    for line in lines:
        waiting.append(line)
        size += len(line)
        if size >= _PIECE or len(waiting) >= _PIECE:
            out("\n".join(waiting))
            waiting, size = [], 0
    if waiting:
        out("\n".join(waiting))


def note(*lines: str, program: str = "sigwrap") -> None:
    for line in lines:
        try:
            out_bytes(_noted(line, program), 2)
        except OSError:
            return  # stderr is closed, or its reader is


def note_in_time(*lines: str) -> None:
    """Print in a run, which must not wait for the reader of its standard error."""
    from sigwrap.linux import caller_stderr  # a run has it, other commands do without

    for line in lines:
        caller_stderr.write_in_time(2, _noted(line, "sigwrap"), _ROOM_WITHIN_S)


def _noted(line: str, program: str) -> bytes:
    return f"{program}: {bounded(printable(line))}\n".encode()


def _write(text: str) -> None:
    try:
        out_bytes(text.encode("utf-8", "backslashreplace"))
    except BrokenPipeError:
        raise
    except OSError as error:
        number = error.errno or 0
        raise KernelError(f"can't write to standard output: {error.strerror}", number) from error


def out_bytes(data: bytes, fd: int = 1) -> None:
    # Unbuffered: sigwrap forks, and each process would write its copy of a buffer.
    while data:
        data = data[os.write(fd, data) :]
