"""The one place that prints.

A message quotes words and file names, which may contain anything, line ends too. So a caller hands
over each line by itself, and it is escaped as a whole.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import sigwrap
from sigwrap.errors import KernelError
from sigwrap.text import bounded, printable

_PIECE = 1 << 15


def out(text: str) -> None:
    """Print a text of several lines, in which untrusted text is already escaped."""
    _write(text + "\n")


def out_lines(lines: Iterable[str]) -> None:
    """Print lines as they come, in pieces of some length."""
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
            out_bytes(noted(line, program), 2)
        except OSError:
            return  # standard error is closed


def noted(line: str, program: str) -> bytes:
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


def version() -> str:
    from sigwrap.exec import is_wanted

    how = "with C extension" if is_wanted() else "without C extension"
    return f"sigwrap {sigwrap.__version__}, {how}"
