"""The terminal: its modes and content, and its bytes as keys. It is left as it was found."""

from __future__ import annotations

import codecs
import os
import termios
import tty
from collections.abc import Iterator, Sequence

from sigwrap.bare import re
from sigwrap.watch.terminal.drawing import Row, Size

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[2J"
_LEAVE = "\x1b[0m\x1b[?25h\x1b[?1049l"
_STRONG, _CHOSEN, _PLAIN = "\x1b[1m", "\x1b[7m", "\x1b[0m"
# A sequence, Alt with a key, or one character.
_KEY = re.compile(r"\x1b[\[O][0-?]*[ -/]*[@-~]?|\x1b[^\[O]|.", re.DOTALL)
_UNFINISHED = re.compile(r"\x1b[\[O][ -?]{0,14}\Z")
# Printable characters are keys of their own.
_NAMES = {
    "\r": "enter",
    "\n": "enter",
    "\t": "tab",
    "\x7f": "backspace",
    "\x08": "backspace",
    "\x03": "quit",
    "\x04": "quit",
    "\x15": "erase",
    "\x1a": "suspend",
    "\x1b": "escape",
    **dict.fromkeys(("\x1b[A", "\x1bOA"), "up"),
    **dict.fromkeys(("\x1b[B", "\x1bOB"), "down"),
    **dict.fromkeys(("\x1b[C", "\x1bOC"), "right"),
    **dict.fromkeys(("\x1b[D", "\x1bOD"), "left"),
    "\x1b[Z": "backtab",
    "\x1b[5~": "page-up",
    "\x1b[6~": "page-down",
}


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
        return Size(found.columns or 80, found.lines or 24)

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
        unfinished = _UNFINISHED.search(text)
        self._rest = unfinished.group() if unfinished else ""
        for key in _KEY.findall(text.removesuffix(self._rest)):
            if name := _NAMES.get(key, key if key.isprintable() else ""):
                yield name
