"""Escape untrusted text for a terminal.

Names, arguments and paths may hold escape sequences, newlines that fake a line of sigwrap, and
bidirectional overrides. str.isprintable() is false for all of them (categories Cc, Cf, Cs, Co, Cn,
Zl, Zp, and every space but the plain one). It is true for some that look like a blank or like
nothing, and for some that strike out or enclose the character before and so change its look.
"""

from __future__ import annotations

from collections.abc import Iterable

from sigwrap.bare import re

_SAFE = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./~^-"
_UNSEEN = (  # compiled on first use
    "[\u0334-\u0338\u0488\u0489\u1abe\u20d0-\u20f0\ua670-\ua672"
    "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U00013441\U00013442\U00016fe4\U0001d159\U000e0100-\U000e01ef]"
)
_RIGHT_TO_LEFT = (
    "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
_REORDERED = "it has right-to-left letters: a terminal may show its words in another order"
_GOES_ON = "    | "
_NARROWEST, _WIDEST = 20, 80  # the size that a terminal reports can be wrong
_LONG_LINE, _LONGEST_WORD, _LONGEST_LINE = 1000, 200, 4000
_NAMED_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1b": "\\e"}


def printable(text: str) -> str:
    if _is_seen(text):
        return text
    return "".join(char if _is_seen(char) else _escape(char) for char in text)


def bounded(line: str) -> str:
    """Shorten a very long line: first its long words, then the line.

    The end stays, because it holds the file name of a path and the advice of a message.
    """
    if len(line) > _LONG_LINE:
        line = " ".join(_cut(word, _LONGEST_WORD) for word in line.split(" "))
    return _cut(line, _LONGEST_LINE)


def shell_words(argv: Iterable[str]) -> str:
    """Return a command line that could be pasted into bash."""
    return " ".join(map(_shell_word, argv))


def note_on_order(lines: Iterable[str]) -> str:
    """Return a warning if a terminal may reorder the words of these lines, or an empty string."""
    for line in lines:
        if not line.isascii() and re.search(_RIGHT_TO_LEFT, line):
            return _REORDERED
    return ""


def rows(line: str, columns: int) -> list[str]:
    """Break a printable line before a terminal would, and mark the continuation.

    So no part of it looks like a line of its own. A character that is not ASCII takes up to two
    columns. `columns` is 0 if the terminal does not report its width.
    """
    columns = min(max(columns or _WIDEST, _NARROWEST), _WIDEST)
    found, row, room = [], "", columns
    for char in line:
        width = 1 if char.isascii() else 2
        if width > room:
            found.append(row)
            row, room = _GOES_ON, columns - len(_GOES_ON)
        row += char
        room -= width
    return [*found, row]


def columns_of(line: str) -> int:
    """Return how many columns a printable line takes at most: two if not ASCII."""
    return len(line) if line.isascii() else sum(1 if char.isascii() else 2 for char in line)


def shortened(text: str, longest: int) -> str:
    """Return the beginning of the text, at most `longest` characters."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def first_of(files: list[str]) -> str:
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    return f"{printable(files[0])}{more}"


def beginning(text: str, characters: int) -> str:
    """Return the text, or its beginning and the number of characters left."""
    rest = len(text) - characters
    return text if rest <= 0 else f"{text[:characters]} ... and {rest} more characters"


def cut_to(line: str, columns: int) -> str:
    """Return the beginning of a printable line in at most `columns` columns."""
    if columns_of(line) <= columns:
        return line
    kept = line[: max(columns - 2, 0)]
    while kept and columns_of(kept) > columns - 2:
        kept = kept[:-1]
    return f"{kept}…"


def _cut(text: str, longest: int) -> str:
    half = longest // 2
    return text if len(text) <= longest else f"{text[: half - 1]}…{text[-half:]}"


def _shell_word(word: str) -> str:
    if word and not word.strip(_SAFE):  # all its characters are safe
        return word
    if _is_seen(word):
        return "'" + word.replace("'", "'\\''") + "'"
    quoted = word.replace("\\", "\\\\").replace("'", "\\'")
    return f"$'{printable(quoted)}'"


def _is_seen(text: str) -> bool:
    return text.isprintable() and (text.isascii() or re.search(_UNSEEN, text) is None)


def _escape(char: str) -> str:
    code = ord(char)
    if char in _NAMED_ESCAPES:
        return _NAMED_ESCAPES[char]
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
