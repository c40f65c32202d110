"""Globs: the one pattern language for programs, paths, files, sockets and variables.

    *       any characters but a slash
    ?       one character but a slash
    [a-z]   one of these characters; [!a-z] is one of the others, and [*] a plain star
    **      any characters
    **/     nothing, or any characters up to a slash

A glob matches a whole text. The time is linear in the text, so no glob and no name can stall the
supervisor. RE2 is not used: most runs need it for nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sigwrap.policy.judge.request import LENIENT
from sigwrap.policy.judge.rules import CommandRule

MAX_PATTERN_CHARACTERS = 1000
EVERYTHING = "*"  # of the commands of a rule; elsewhere it is a glob as any other
_SPECIAL = {ord(each): f"[{each}]" for each in "*?["}
_ENDS: dict[str, Callable[[str], bool]] = {
    "": lambda rest: not rest,
    "*": lambda rest: "/" not in rest,
    "**": lambda rest: True,
}


class BadPattern(Exception):
    """Report the message at the pattern's place in the policy."""


class Glob:
    __slots__ = ("_matches", "pattern", "prefix")

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.prefix = literal_prefix(pattern)
        self._matches: Callable[[str], bool] | None = None  # most are never needed

    def matches(self, text: str) -> bool:
        if not text.startswith(self.prefix):
            return False
        if self._matches is None:
            rest = self.pattern[len(self.prefix) :]
            self._matches = _ENDS.get(rest) or _Machine(rest).matches
        return self._matches(readable(text[len(self.prefix) :]))


class Named:
    """Programs that rules deny, redirect or need approval for: names, and paths with a slash."""

    def __init__(self, rules: Iterable[CommandRule]) -> None:
        words = {word for rule in rules if rule.decision not in LENIENT for word in rule.commands}
        words.discard(EVERYTHING)
        self.names = frozenset(word for word in words if "/" not in word and not is_glob(word))
        self.paths = frozenset(word for word in words if "/" in word and not is_glob(word))
        self._globs = tuple(Glob(word) for word in words if "/" not in word and is_glob(word))
        self._prefixes = tuple(glob.prefix for glob in self._globs)

    def among(self, names: Iterable[str]) -> list[str]:
        prefixes = self._prefixes  # nearly no name of a folder begins as any of them does
        return [
            name
            for name in names
            if name in self.names
            or (name.startswith(prefixes) and any(glob.matches(name) for glob in self._globs))
        ]


def is_glob(text: str) -> bool:
    return "*" in text or "?" in text or ("[" in text and "]" in text[text.index("[") :])


def check_glob(pattern: str) -> None:
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise BadPattern(f"longer than {MAX_PATTERN_CHARACTERS} characters")
    _Machine(pattern)


def doubt_about_glob(pattern: str) -> str:
    """Return what in a glob differs from other tools' globs, or ""."""
    if pattern.startswith("!"):
        return "a ! at the start is a plain character, not a negation"
    parts = _parts(pattern)
    if "[" in parts and pattern.rpartition("/")[2] != "[":  # test(1) has that name
        return "this [ has no closing ] and is a plain character"
    if any(part.startswith("[^") and part != "[^]" for part in parts):
        return "^ in a set is a plain character; to negate the set, write [!...]"
    for part in pattern.split("{")[1:]:
        if "," in part.partition("}")[0] and "}" in part and f"${{{part}" not in pattern:
            return "braces are plain characters; list each word"
    return ""


def escape_glob(text: str) -> str:
    return text.translate(_SPECIAL)


def readable(text: str) -> str:
    """Return the text with U+FFFD for each byte that is no text.

    Otherwise `?` and a regular expression's `.` would not match it, and one stray byte between two
    words would hide a command from the rule that denies it.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def literal_prefix(pattern: str) -> str:
    for special in "*?[":
        pattern = pattern.partition(special)[0]
    return pattern


class _Machine:
    """Keep all states of a match at once, one bit each.

    State n has matched the first n characters or sets of the glob. A star is no state, but lets one
    stay.
    """

    __slots__ = ("_end", "_folders", "_known", "_ones", "_stay", "_stay_at_slash")

    def __init__(self, pattern: str) -> None:
        self._ones: list[str | _Set] = []
        self._known: dict[str, int] = {}  # by a character: the states that it lets go on
        self._stay = self._stay_at_slash = self._folders = 0
        for part in _parts(pattern):
            state = 1 << len(self._ones)
            if part == "**/" and (self._stay_at_slash | self._folders << 1) & state:
                continue  # as said before: `**/**/`
            if part == "**/":
                self._folders |= state  # the state is left by a slash, or skipped
                self._ones.append("/")
            if part in ("*", "**", "**/"):
                self._stay |= state
                self._stay_at_slash |= 0 if part == "*" else state
            else:
                self._ones.append(_Set(part) if len(part) > 1 else part)
        self._end = 1 << len(self._ones)

    def matches(self, text: str) -> bool:
        known, folders = self._known, self._folders
        states = 1 | (folders & 1) << 1
        for character in text:
            going = known.get(character)
            if going is None:
                going = self._going(character)
                if character.isascii():  # so that texts of a session cannot fill the memory
                    known[character] = going
            moved = (states & going) << 1
            stay = self._stay_at_slash if character == "/" else self._stay
            states = moved | (moved & folders) << 1 | states & stay
            if not states:
                return False
        return bool(states & self._end)

    def _going(self, character: str) -> int:
        found = 0
        for at, one in enumerate(self._ones):
            if isinstance(one, _Set):
                matches = one.has(character)
            else:
                matches = one == character or (one == "?" and character != "/")
            found |= matches << at
        return found


class _Set:
    __slots__ = ("_negated", "_ranges")

    def __init__(self, written: str) -> None:
        """Parse a set; `written` has its brackets."""
        members = written[1:-1]
        self._negated = members.startswith("!")
        members = members.removeprefix("!")
        if not members:
            raise BadPattern(f"{written} is an empty set")
        self._ranges = []
        while members:
            has_end = members[1:2] == "-" and len(members) > 2
            first, last = members[0], members[2 if has_end else 0]
            if last < first:
                raise BadPattern(f"the range {first}-{last} ends before it begins")
            self._ranges.append((first, last))
            members = members[3 if has_end else 1 :]

    def has(self, character: str) -> bool:
        return self._negated != any(first <= character <= last for first, last in self._ranges)


def _parts(pattern: str) -> list[str]:
    """Split a glob into stars, sets and single characters."""
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        part = next((each for each in ("**/", "**") if pattern.startswith(each, at)), pattern[at])
        if part == "[":
            first = at + 1 + pattern.startswith("!", at + 1)
            end = pattern.find("]", first + 1)  # a ] that comes first is a member
            end = end if end >= 0 else pattern.find("]", first)
            part = pattern[at : end + 1] or part
        parts.append(part)
        at += len(part)
    return parts
