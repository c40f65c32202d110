"""The words of a process in a policy: YAML that reads back as these words, and globs that match
only these.

A process chooses its words, and a user may allow them. So a rule must not match more than they say,
and no word may move the cursor of a terminal or end a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from posixpath import normpath

from sigwrap.policy.judge.globs import MAX_PATTERN_CHARACTERS, escape_glob, is_glob, readable
from sigwrap.text import printable

_PLAIN_WORD = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")
# Some of these mean something only in YAML 1.1, which editors and other tools read.
_OTHER_THAN_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


def yaml_list(words: Iterable[str]) -> str:
    return f"[{', '.join(map(yaml_word, words))}]"


def yaml_arguments(words: Iterable[str]) -> str:
    """Write the value of `args`. sigwrap replaces variables there, but not in their defaults."""
    return yaml_list(each.replace("${", "${_:-$}{") for each in words)


def yaml_word(word: str) -> str:
    """Write a word in one line. YAML has no lone surrogates: the engine's reading replaces them."""
    word = readable(word)
    if _PLAIN_WORD.fullmatch(word) and word.lower() not in _OTHER_THAN_WORDS:
        return word
    if "\\" in word and is_plain(word):  # double quotes would double each of them
        return "'" + word.replace("'", "''") + "'"
    return '"' + "".join(map(_between_double_quotes, word)) + '"'


def glob_of(name: str) -> str:
    """Return a glob that matches only this name, which is no path."""
    read = readable(name)
    if read == name and not is_glob(name) and "${" not in name:
        return name
    glob = escape_glob(read).replace("${", "[$]{")
    # The engine may compare text outside of brackets before it replaces bytes that are no text.
    return glob if read == name else _NOT_ASCII.sub(r"[\g<0>]", glob)


def stands_as_it_is(word: str) -> bool:
    """Return whether `commands` can have the word as it is, which then is no glob."""
    return (
        bool(word)
        and is_plain(word)
        and not is_glob(word)
        and "${" not in word
        and not word.startswith("~")
        and ("/" not in word or normpath(word) == word)
        and len(word) <= MAX_PATTERN_CHARACTERS
    )


def is_plain(text: str) -> bool:
    """Return whether a terminal shows the text as it is."""
    return text.isprintable() and printable(text) == text


def _between_double_quotes(character: str) -> str:
    if character in '\\"':
        return f"\\{character}"
    if is_plain(character):
        return character
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
