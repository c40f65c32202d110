"""Lines for a terminal of some width."""

from __future__ import annotations

from collections.abc import Iterator

from sigwrap.escape import columns_of, cut_to

_NARROWEST = 16


def wrapped(line: str, columns: int, indent: str = "") -> Iterator[str]:
    """Broken at spaces, what goes on indented. 0 columns: as long as it is."""
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


def cut(line: str, columns: int) -> str:
    """0 columns: as long as it is."""
    return cut_to(line, max(columns, _NARROWEST)) if columns else line


def _fits(line: str, columns: int) -> bool:
    return len(line) <= columns and columns_of(line) <= columns
