"""The terminal: its modes and content, and its bytes as keys. It is left as it was found."""

from __future__ import annotations

import codecs
import os
import shutil
import termios
import tty
from collections.abc import Iterator, Sequence

from sigwrap.watch.terminal.drawing import Row, Size

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[2J"
_LEAVE = "\x1b[0m\x1b[?25h\x1b[?1049l"
_STRONG, _CHOSEN, _PLAIN = "\x1b[1m", "\x1b[7m", "\x1b[0m"
# Printable characters are keys of their own.
_NAMES = {
    "\r": "enter",
    "\n": "enter",
    "\t": "tab",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x03": "quit",
    "\x04": "quit",
    "\x0c": "redraw",
    "\x15": "erase",
    "\x1a": "suspend",
}
_SEQUENCES = {
    "A": "up",
    "B": "down",
    "C": "right",
    "D": "left",
    "Z": "backtab",
    "5~": "page-up",
    "6~": "page-down",
}
_ESCAPE = "\x1b"
_LONGEST_SEQUENCE = 16


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
            pass  # the terminal hung up

    @property
    def size(self) -> Size:
        found = os.get_terminal_size(self._write_fd)
        return Size(found.columns or shutil.get_terminal_size().columns, found.lines or 24)

    def clear(self) -> None:
        self._shown = []
        self._write("\x1b[2J")

    def show(self, rows: Sequence[Row]) -> None:
        """Write the rows that have changed."""
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


class Keys:
    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def of(self, data: bytes) -> Iterator[str]:
        """Yield keys; an Escape with nothing behind it is the key of that name."""
        text = self._rest + self._decoder.decode(data)
        self._rest = ""
        at = 0
        while at < len(text):
            char = text[at]
            at += 1
            if char != _ESCAPE:
                if name := _NAMES.get(char, char if char.isprintable() else ""):
                    yield name
            elif at == len(text):
                yield "escape"
            elif text[at] in "[O":
                end = at + 1
                while end < len(text) and not "@" <= text[end] <= "~":
                    end += 1
                if end == len(text):
                    if end - at < _LONGEST_SEQUENCE:
                        self._rest = text[at - 1 :]
                    return
                if name := _SEQUENCES.get(text[at + 1 : end + 1], ""):
                    yield name
                at = end + 1
            else:  # Alt with a key
                at += 1
