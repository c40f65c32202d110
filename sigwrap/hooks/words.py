"""A word of a shell line: its text without quotes, as far as it is known before it runs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

from sigwrap.bare import NamedTuple, re
from sigwrap.policy.judge.match import UNTOLD

_GLOB = frozenset("*?[")
_QUOTED_IN_BRACKETS = re.compile(r"\[[^]]*\x01[^]]*\]")
_ESCAPES = dict(
    zip("abeEfnrtv\\'\"?", "\a\b\x1b\x1b\f\n\r\t\v\\'\"?", strict=True),
)
_ESCAPED = r"\\(?:x([0-7][0-9a-fA-F])|([01][0-7]{2})|(.))"  # those of ASCII characters
_QUOTING = re.compile(r"[\\'\"]")
_SAME_FOLDER = re.compile(r"/(\./|/)+")
# Each leads to another program or directory for each process that looks.
_PROCESS = re.compile(r"(^|/)proc/(self|thread-self|\d+|\0)/")
_OF_A_PROCESS = re.compile(r"/(exe|cwd|root|fd|map_files)(/|$)")
_BELOW_A_DESCRIPTOR = re.compile(r"/dev/fd/\d+/.")
_LONGEST = 4096


def without_quotes(text: str) -> str:
    """Return the text as a shell may read it: `c\\d`, `'c'd` and `cd` are one word."""
    return _QUOTING.sub("", text)


class Word(NamedTuple):
    text: str  # with UNTOLD for unknown parts
    pattern: str = ""  # of a glob: quoted characters are in brackets
    splits: bool = False  # an unknown part may be several words

    @property
    def known(self) -> bool:
        return UNTOLD not in self.text and not self.pattern


NOT_KNOWN = Word(UNTOLD, splits=True)


class Part(NamedTuple):
    """A part of a word that is quoted or expanded as a whole."""

    text: str
    quoted: bool
    splits: bool = False


def word_of(parts: Sequence[Part], home: str) -> Word:
    """Join the parts. `home`: the home directory, or empty if it is not known."""
    word = _joined(parts, home)
    path = _SAME_FOLDER.sub("/", word.text)
    process = _PROCESS.search(path)
    is_of_one = process is not None and _OF_A_PROCESS.search(path, process.end() - 1)
    return Word(UNTOLD) if is_of_one or _BELOW_A_DESCRIPTOR.search(path) else word


def _joined(parts: Sequence[Part], home: str) -> Word:
    whole = "".join(part.text for part in parts)
    bare = "".join(part.text for part in parts if not part.quoted)
    is_started_bare = bool(parts) and not parts[0].quoted
    is_several = "{" in bare and ("," in bare or ".." in bare)
    is_home = "=~" in bare or ":~" in bare
    is_command = bare.startswith("=") and len(whole) > 1 and is_started_bare  # to zsh, its path
    marked = "".join("\1" if part.quoted else part.text for part in parts)
    if is_several:
        before = [*takewhile(lambda part: part.quoted or "{" not in part.text, parts)]
        started = parts[len(before)].text.partition("{")[0]
        return _joined([*before, Part(started, quoted=False), Part(UNTOLD, True, True)], home)
    if is_home or is_command or len(marked) > _LONGEST or _QUOTED_IN_BRACKETS.search(marked):
        return NOT_KNOWN
    splits = any(part.splits for part in parts)
    if not (is_started_bare and bare.startswith("~")):
        return Word(whole, _pattern(parts), splits)
    user, slash, _ = parts[0].text[1:].partition("/")
    if user or not home or not (slash or len(parts) == 1):
        return NOT_KNOWN
    below = Part(parts[0].text[1:], quoted=False)
    return Word(home + whole[1:], _pattern([Part(home, quoted=True), below, *parts[1:]]), splits)


def _pattern(parts: Sequence[Part]) -> str:
    bare = [part.text for part in parts if not part.quoted]
    if not any(_GLOB & set(text) for text in bare) or bare == ["["] == [*map(_text, parts)]:
        return ""
    return "".join(
        "".join(f"[{each}]" if each in _GLOB else each for each in part.text)
        if part.quoted
        else part.text
        for part in parts
    )


def _text(part: Part) -> str:
    return part.text


def ansi(text: str) -> str:
    """Read $'…'; the text is not known if it has other escapes than these."""
    kept = re.sub(_ESCAPED, _unescaped, text)
    return UNTOLD if UNTOLD in kept else kept


def _unescaped(found: re.Match[str]) -> str:
    if found[1]:
        return chr(int(found[1], 16) % 128)
    return chr(int(found[2], 8) % 128) if found[2] else _ESCAPES.get(found[3], UNTOLD)
