"""A text that is longer than the terminal is high, in a pager.

Which one say $SIGWRAP_PAGER and $PAGER; where neither does, it is less, told by $LESS to end at
once where all fits, to show colours, and to leave the text on the screen; a $LESS of the user's
stays, but for the colours. A pager gets lines as they come, so a log of a million events is read as
far as somebody reads it. What it gets is escaped as for the terminal itself: less obeys what -R
lets through.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from sigwrap.cli.output import note, out
from sigwrap.escape import columns_of
from sigwrap.linux import procfs
from sigwrap.start import onefile

Show = Callable[[str], None]

_LESS = b"FRX"
_SETTINGS = {b"LESS": _LESS, b"LV": b"-c"}
_NOT_A_PAGER = frozenset({"cat", ""})
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_USUAL_SIZE = (80, 24)  # a terminal may not know its own


@contextmanager
def pager(*, wanted: bool = True) -> Iterator[Show]:
    """A function that shows a text, which may have several lines. Whoever reads may leave before
    the end."""
    line = _line() if wanted and os.isatty(1) and os.environ.get("TERM") != "dumb" else ""
    shown = _Shown(line)
    try:
        try:
            yield shown.show
        except BrokenPipeError:
            pass  # `sigwrap replay | head` is no failure
        else:
            shown.end()
    finally:
        shown.wait()


def _line() -> str:
    """Of a shell; empty where there is no pager, or none is wanted."""
    for name in ("SIGWRAP_PAGER", "PAGER"):
        line = os.environ.get(name)
        if line is None:
            continue
        line = line.strip()
        if line in _NOT_A_PAGER:
            return ""
        try:
            program = shlex.split(line)[0]
        except (ValueError, IndexError):
            program = ""
        if shutil.which(program):
            return line
        if name == "SIGWRAP_PAGER":
            note(f"${name}: no such program: {line!r}; printing without a pager")
            return ""
    return "less" if shutil.which("less") else ""


class _Shown:
    """Held back until it is more than one screen."""

    def __init__(self, line: str) -> None:
        self._line = line
        self._held: list[str] = []
        self._rows = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._interrupts: Callable[[int, FrameType | None], object] | int | None = None
        if line:
            size = os.get_terminal_size(1)
            self._columns, self._most_rows = (
                each or usual for each, usual in zip(size, _USUAL_SIZE, strict=True)
            )

    def show(self, text: str) -> None:
        if self._process is not None:
            self._write(text)
        elif not self._line:
            out(text)
        else:
            self._held.append(text)
            self._rows += self._rows_of(text)
            if self._rows >= self._most_rows:  # the prompt of the shell needs one
                self._start()

    def end(self) -> None:
        held, self._held = self._held, []
        for text in held:
            out(text)

    def wait(self) -> None:
        if self._process is None:
            return
        try:
            if self._process.stdin is not None:
                self._process.stdin.close()
        except BrokenPipeError:
            pass
        self._process.wait()
        signal.signal(signal.SIGINT, self._interrupts)

    def _rows_of(self, text: str) -> int:
        lines = _COLOUR.sub("", text).split("\n")
        return sum(max(-(-columns_of(line) // self._columns), 1) for line in lines)

    def _start(self) -> None:
        environment = onefile.original_environment(procfs.environment())
        own = {name: value for name, value in _SETTINGS.items() if name not in environment}
        if b"LESS" in environment:  # the user's own, which may leave colours as escapes
            own[b"LESS"] = b"-R " + environment[b"LESS"]
        try:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", self._line],
                stdin=subprocess.PIPE,
                env={**environment, **own},
                bufsize=0,
            )
        except OSError as error:
            note(f"can't start the pager: {error.strerror}")
            self._line = ""
            self.end()
            return
        # A key that the pager means for itself.
        self._interrupts = signal.signal(signal.SIGINT, signal.SIG_IGN)
        held, self._held = self._held, []
        for text in held:
            self._write(text)

    def _write(self, text: str) -> None:
        assert self._process is not None and self._process.stdin is not None
        data = f"{text}\n".encode("utf-8", "backslashreplace")
        while data:
            data = data[self._process.stdin.write(data) :]
