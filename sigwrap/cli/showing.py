"""What the commands that read logs have in common: the key, colour, and a reader who leaves."""

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
    """Of the terminal; 0 where there is none, and lines may be of any length."""
    return 0 if to_file or not os.isatty(1) else shutil.get_terminal_size().columns


def append(path: Path, text: str) -> None:
    try:
        with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text + "\n")
    except OSError as error:
        raise UsageError(f"can't write {path}: {error.strerror}") from error


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """`sigwrap replay | head` is no failure."""
    try:
        yield
    except BrokenPipeError:
        pass
