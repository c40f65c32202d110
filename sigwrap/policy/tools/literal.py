"""The words of a process, as a policy has them: YAML that reads back as just these, a glob and a
regular expression that fit just these.

A process chooses its words, and somebody is going to allow them: what fitted more than they say
would be a hole. None of what is made here moves a terminal's cursor, or ends a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from posixpath import normpath

from sigwrap.escape import printable
from sigwrap.policy.judge.match import MAX_PATTERN_CHARACTERS, escape_glob, is_glob, to_bytes

_PLAIN_WORD = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")
# Including those of YAML 1.1, for the sake of editors and other tools.
_OTHER_THAN_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_SPECIAL_IN_A_REGEX = frozenset(r"\.+*?()|[]{}^$")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


def yaml_list(words: Iterable[str]) -> str:
    return f"[{', '.join(map(yaml_word, words))}]"


def yaml_word(word: str) -> str:
    """In one line. YAML has no lone surrogates: they are written as the engine reads them."""
    word = as_it_is_read(word)
    if _PLAIN_WORD.fullmatch(word) and word.lower() not in _OTHER_THAN_WORDS:
        return word
    if "\\" in word and is_plain(word):  # double quotes would double each of them
        return "'" + word.replace("'", "''") + "'"
    return '"' + "".join(map(_between_double_quotes, word)) + '"'


def regex_of(words: str) -> str:
    """For a part of a pattern that fits nothing else."""
    return "".join(map(_in_a_regex, as_it_is_read(words)))


def glob_of(name: str) -> str:
    """For a name that is no path."""
    read = as_it_is_read(name)
    if read == name and not is_glob(name) and "${" not in name:
        return name
    glob = escape_glob(read).replace("${", "[$]{")
    # What stands outside of brackets may be compared before it is read so.
    return glob if read == name else _NOT_ASCII.sub(r"[\g<0>]", glob)


def stands_as_it_is(word: str) -> bool:
    """Among `commands`: neither a glob nor what is read otherwise than it stands there."""
    return (
        bool(word)
        and is_plain(word)
        and not is_glob(word)
        and "${" not in word
        and not word.startswith("~")
        and ("/" not in word or normpath(word) == word)
        and len(word) <= MAX_PATTERN_CHARACTERS
    )


def as_it_is_read(words: str) -> str:
    """By the engine (match.to_bytes), for which each byte that is no text is the same."""
    return to_bytes(words).decode()


def is_plain(text: str) -> bool:
    """On a terminal it looks like what it is."""
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


def _in_a_regex(character: str) -> str:
    if character in _SPECIAL_IN_A_REGEX:
        return f"\\{character}"
    return character if is_plain(character) else f"\\x{{{ord(character):x}}}"
