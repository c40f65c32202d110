"""What a person would see on a terminal."""

from __future__ import annotations

import os
import re
import select
import time

import pyte

from tests.support.terminal import Terminal
from tests.support.waiting import PATIENCE_S, Late

ROWS, COLUMNS = 24, 80
_QUIET_S = 0.4
_QUIET_AND_DIFFERENT_S = 2.0


class _Xterm(pyte.Screen):
    """pyte takes xterm's modes of keys (CSI > … m) for colours, and fails."""

    def select_graphic_rendition(self, *attributes: int, private: bool = False) -> None:
        if not private:
            super().select_graphic_rendition(*attributes)


class Screen:
    def __init__(self, terminal: Terminal) -> None:
        self._fd = terminal.master
        self._screen = _Xterm(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLIN)
        self._ended = False

    @property
    def lines(self) -> tuple[str, ...]:
        return tuple(line.rstrip() for line in self._screen.display)

    def await_text(self, pattern: str, within_s: float = PATIENCE_S) -> None:
        deadline = time.monotonic() + within_s
        while not re.search(pattern, "\n".join(self.lines), re.MULTILINE):
            if not self._read(max(0.0, deadline - time.monotonic())):
                raise Late(f"{pattern!r} did not appear on {self.lines!r}")

    def settled(self, expected: tuple[str, ...] | None) -> tuple[str, ...]:
        """Once it is as expected. Where nothing is expected, or it stays different: once nothing
        has been written for a while, which no event tells."""
        quiet_s = _QUIET_S if expected is None else _QUIET_AND_DIFFERENT_S
        while self.lines != expected and self._read(quiet_s):
            pass
        return self.lines

    def await_end(self, within_s: float) -> None:
        """A job that nobody reads from may never end."""
        deadline = time.monotonic() + within_s
        while self._read(max(0.0, deadline - time.monotonic())):
            pass

    def _read(self, within_s: float) -> bool:
        if self._ended or not self._poll.poll(within_s * 1000):
            return False
        try:
            data = os.read(self._fd, 1 << 16)
        except OSError:  # EIO: the last one on the terminal is gone
            data = b""
        self._ended = not data
        self._stream.feed(data)
        return bool(data)
