"""The one place that prints."""

from __future__ import annotations

import os

from sigwrap.escape import printable


def out(text: str) -> None:
    _write(1, text + "\n")


def note(text: str, program: str = "sigwrap") -> None:
    for line in text.splitlines():
        try:
            _write(2, f"{program}: {printable(line)}\n")
        except OSError:
            return  # stderr is closed, or its reader is


def _write(fd: int, text: str) -> None:
    out_bytes(text.encode("utf-8", "backslashreplace"), fd)


def out_bytes(data: bytes, fd: int = 1) -> None:
    # Unbuffered: sigwrap forks, and each process would write its copy of a buffer.
    while data:
        data = data[os.write(fd, data) :]
