"""Lines for a terminal of some width."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sigwrap.escape import columns_of, cut_to

_NARROWEST = 16
# A word of YAML in flow style, with what is quoted in it: nothing is broken within.
_WORD = re.compile(r"""(?:"(?:\\.|[^"\\])*"|'[^']*'|[^\s"'])+\s*""")


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


def yaml_wrapped(line: str, columns: int) -> Iterator[str]:
    """A line in flow style, a proposed rule, or a comment: broken so that it means the same where
    it is copied to. A word that is too long stays whole; a comment comes before what it was behind.
    0 columns: as it is."""
    if fits(line, columns):
        yield line
        return
    indent = " " * (len(line) - len(line.lstrip()))
    items, comment = _items_and_comment(line.strip())
    if comment:
        yield from wrapped(f"{indent}{comment}", columns, f"{indent}# ")
    shown = indent
    for item in items:
        if shown.strip() and not fits((shown + item).rstrip(), columns):
            yield shown.rstrip()
            shown = f"{indent}    "
        shown += item
    if shown.strip():
        yield shown.rstrip()


def _items_and_comment(line: str) -> tuple[list[str], str]:
    """Each item with the comma behind it."""
    items, item, end = list[str](), "", 0
    while end < len(line) and line[end] != "#":
        found = _WORD.match(line, end)
        word = found[0] if found else line[end:]
        end += len(word)
        item += word
        if word.rstrip().endswith(","):
            items.append(item)
            item = ""
    return [*items, item] if item else items, line[end:]


def fits(line: str, columns: int) -> bool:
    """0 columns: whatever its length."""
    return not columns or _fits(line, max(columns, _NARROWEST))


def cut(line: str, columns: int) -> str:
    """0 columns: as long as it is."""
    return cut_to(line, max(columns, _NARROWEST)) if columns else line


def _fits(line: str, columns: int) -> bool:
    return len(line) <= columns and columns_of(line) <= columns
