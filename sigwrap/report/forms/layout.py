"""Lines and color for a terminal; with 0 columns, lines may have any length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

_NARROWEST = 16


def wrapped(line: str, columns: int, indent: str = "") -> Iterator[str]:
    """Break a line at spaces, and indent the rest."""
    room = max(columns, _NARROWEST) if columns else 0
    if not room or _fits(line, room):
        yield line
        return
    while not _fits(line, room):
        end = room
        while not _fits(line[:end], room):
            end -= 1
        at = line.rfind(" ", len(indent) + 1, end + 1)
        if at <= len(indent):
            at = end
        yield line[:at].rstrip()
        line = indent + line[at:].lstrip()
    if line.strip():
        yield line


def columns_of(line: str) -> int:
    """Return how many columns a printable line takes at most: two if not ASCII."""
    return len(line) if line.isascii() else sum(1 if char.isascii() else 2 for char in line)


def cut_to(line: str, columns: int) -> str:
    """Return the beginning of a printable line in at most `columns` columns."""
    if columns_of(line) <= columns:
        return line
    kept = line[: max(columns - 2, 0)]
    while kept and columns_of(kept) > columns - 2:
        kept = kept[:-1]
    return f"{kept}…"


def cut(line: str, columns: int) -> str:
    return cut_to(line, max(columns, _NARROWEST)) if columns else line


def _fits(line: str, columns: int) -> bool:
    return len(line) <= columns and columns_of(line) <= columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    colour: bool

    @classmethod
    def suited_to(cls, is_terminal: bool, env: Mapping[str, str]) -> Style:
        """Follow https://no-color.org: any non-empty value turns color off."""
        return cls(colour=is_terminal and not env.get("NO_COLOR") and env.get("TERM") != "dumb")

    def good(self, text: str) -> str:
        return self._paint("32", text)

    def bad(self, text: str) -> str:
        return self._paint("1;31", text)

    def heading(self, text: str) -> str:
        return self._paint("1", text)

    def _paint(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour else text


PLAIN = Style(colour=False)
