"""The terminal itself: its modes while it is ours, and what is on it. It is left as it was."""

from __future__ import annotations

import os
import shutil
import termios
import tty
from collections.abc import Sequence

from sigwrap.watch.terminal.drawing import Place, Row

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[2J"
_LEAVE = "\x1b[0m\x1b[?25h\x1b[?1049l"
_STRONG, _CHOSEN, _PLAIN = "\x1b[1m", "\x1b[7m", "\x1b[0m"


class Screen:
    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        self._before = termios.tcgetattr(read_fd)
        self._shown: list[Row] = []
        self._is_ours = False

    def enter(self) -> None:
        modes = termios.tcgetattr(self._read_fd)
        tty.setraw(self._read_fd, termios.TCSADRAIN)
        raw = termios.tcgetattr(self._read_fd)
        raw[1] = modes[1]  # output as it was: a line feed still returns
        termios.tcsetattr(self._read_fd, termios.TCSADRAIN, raw)
        self._is_ours = True
        self._write(_ENTER)
        self._shown = []

    def leave(self) -> None:
        if not self._is_ours:
            return
        self._is_ours = False
        try:
            self._write(_LEAVE)
            termios.tcsetattr(self._read_fd, termios.TCSADRAIN, self._before)
        except (OSError, termios.error):
            pass  # it hung up

    @property
    def place(self) -> Place:
        size = os.get_terminal_size(self._write_fd)
        return Place(size.columns or shutil.get_terminal_size().columns, size.lines or 24)

    def clear(self) -> None:
        self._shown = []
        self._write("\x1b[2J")

    def show(self, rows: Sequence[Row]) -> None:
        """What has changed of it is written."""
        written = []
        for at, row in enumerate(rows):
            if at < len(self._shown) and self._shown[at] == row:
                continue
            style = _CHOSEN if row.is_chosen else _STRONG if row.is_strong else ""
            end = _PLAIN if style else ""
            written.append(f"\x1b[{at + 1};1H{style}{row.text}{end}\x1b[K")
        self._shown = list(rows)
        if written:
            self._write("".join(written))

    def ring(self) -> None:
        self._write("\a")

    def _write(self, text: str) -> None:
        data = text.encode("utf-8", "replace")
        while data:
            data = data[os.write(self._write_fd, data) :]
