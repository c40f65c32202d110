"""Helpers of the commands that read logs: the key, colour, the terminal's width."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sigwrap.errors import UsageError
from sigwrap.report.forms.style import Style
from sigwrap.store.chain import key_from_environment


def key() -> bytes | None:
    return key_from_environment(os.environb)


def style(to_file: bool = False) -> Style:
    return Style.suited_to(not to_file and os.isatty(1), os.environ)


def columns(to_file: bool = False) -> int:
    """Return the terminal's width; 0 without a terminal, where lines may have any length."""
    return 0 if to_file or not os.isatty(1) else shutil.get_terminal_size().columns


def append(path: Path, text: str) -> None:
    try:
        with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text + "\n")
    except OSError as error:
        raise UsageError(f"can't write {path}: {error.strerror}") from error


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """Ignore a closed pipe, as in `sigwrap replay | head`."""
    try:
        yield
    except BrokenPipeError:
        pass
