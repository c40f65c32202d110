"""Bytes of a terminal as keys: a printable character is itself, every other has a name."""

from __future__ import annotations

import codecs
from collections.abc import Iterator

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


class Keys:
    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""

    def of(self, data: bytes) -> Iterator[str]:
        """An Escape alone is one where nothing has come with it."""
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
