"""Lines for a terminal of a given width; with 0 columns, lines may have any length."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sigwrap.escape import columns_of, cut_to

_NARROWEST = 16
# A word of YAML in flow style. A quoted part stays whole.
_WORD = re.compile(r"""(?:"(?:\\.|[^"\\])*"|'[^']*'|[^\s"'])+\s*""")


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


def yaml_wrapped(line: str, columns: int) -> Iterator[str]:
    """Break a line of YAML in flow style, or a comment, so that a copy of it means the same.

    A word that is too long stays whole. A comment moves in front of its line.
    """
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
    """Return the items, each with its comma, and the comment."""
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
    return not columns or _fits(line, max(columns, _NARROWEST))


def cut(line: str, columns: int) -> str:
    return cut_to(line, max(columns, _NARROWEST)) if columns else line


def _fits(line: str, columns: int) -> bool:
    return len(line) <= columns and columns_of(line) <= columns
