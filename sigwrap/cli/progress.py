"""Show progress in one line on a terminal, and erase it at the end."""

from __future__ import annotations

import os
import time

from sigwrap.cli.output import out_bytes
from sigwrap.escape import printable
from sigwrap.events import Event

_STARTS_AFTER_S = 1.0
_BETWEEN_S = 0.2
_EVENTS_BETWEEN_LINES = 5_000
_ERASE = b"\r\x1b[K"


class Progress:
    """Prints nothing in the first second, or if standard error is not a terminal."""

    def __init__(self) -> None:
        self._wanted = os.isatty(2) and os.environ.get("TERM") != "dumb"
        self._next_s = time.monotonic() + _STARTS_AFTER_S
        self._shown = False

    def say(self, text: str) -> None:
        now_s = time.monotonic()
        if not self._wanted or now_s < self._next_s:
            return
        self._next_s = now_s + _BETWEEN_S
        columns = os.get_terminal_size(2).columns or 80
        line = f"sigwrap: {printable(text)}"[: columns - 1]
        self._shown = True
        self._write(_ERASE + line.encode())

    def read(self, event: Event) -> None:
        if event.seq % _EVENTS_BETWEEN_LINES == 0:
            self.say(f"{event.seq} events read")

    def done(self) -> None:
        if self._shown:
            self._shown = False
            self._write(_ERASE)

    def _write(self, data: bytes) -> None:
        try:
            out_bytes(data, 2)
        except OSError:
            self._wanted = False  # the terminal is gone
