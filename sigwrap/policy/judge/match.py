"""Regexes and globs, linear in time over bounded input.

RE2, not `re`: patterns come from people and arguments from the wrapped program, and neither may
stall the supervisor. It is imported where a pattern is first compiled: most runs compile none.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sigwrap.bare import re
from sigwrap.bare.functools import lru_cache
from sigwrap.hints import Any

MAX_MATCHED_BYTES = 64 * 1024
MAX_MATCHED_ARGUMENTS = 4096  # one search each; what is beyond is searched in the joined text only
MAX_PATTERN_CHARACTERS = 1000
UNTOLD = "\0"  # a part of a path that is not told; alone, the path could be any
_SPECIAL_IN_GLOBS = {ord(each): f"[{each}]" for each in "*?["}
MAX_PROGRAM_SIZE = 4000  # RE2 instructions: bounds the cost per byte where its DFA gives up


class BadPattern(Exception):
    """Report the message at the pattern's place in the policy."""


class Regex:
    """Several patterns, of which one must be found. Compiled when it is first needed, which most of
    a policy never is; `check_regexes` finds out earlier whether it can be."""

    __slots__ = ("_pattern", "_search")

    def __init__(self, patterns: Sequence[str]) -> None:
        self._pattern = _joined(patterns)
        self._search: Any = None

    def found_in(self, text: bytes) -> bool:
        if self._search is None:
            self._search = _compiled(self._pattern).search
        return self._search(text) is not None


class Glob:
    """`*` and `?` stop at a slash, `**` does not; `[a-z]` is one of a set."""

    __slots__ = ("_pattern", "_search", "prefix")

    def __init__(self, pattern: str) -> None:
        self.prefix = _literal_prefix(pattern)
        self._pattern = pattern
        self._search: Any = None

    def matches(self, text: str) -> bool:
        # Nearly all texts differ in the prefix already, and comparing it costs a tenth.
        if not text.startswith(self.prefix):
            return False
        if self._search is None:
            self._search = _compiled(_translated(self._pattern)).search
        return self._search(to_bytes(text)) is not None


class NameGlob:
    """On a whole name that is no path: nothing stops `*` and `?`."""

    __slots__ = ("_search", "pattern")

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self._search: Any = None

    def matches(self, text: str) -> bool:
        if not is_glob(self.pattern):
            return text == self.pattern
        if self._search is None:
            self._search = _compiled(_translated_name(self.pattern)).search
        return self._search(to_bytes(text)) is not None


class Paths:
    """Paths and globs, of which one must be among some paths."""

    __slots__ = ("_globs", "_literals", "_reaches")

    def __init__(self, patterns: Sequence[str]) -> None:
        self._reaches = tuple(map(_Reach, patterns))
        self._literals = frozenset(each for each in patterns if not is_glob(each))
        self._globs = tuple(Glob(each) for each in patterns if is_glob(each))

    def match(self, paths: Collection[str]) -> bool:
        if not self._literals.isdisjoint(paths):
            return True
        told = [path for path in paths if UNTOLD not in path]
        return any(glob.matches(path) for glob in self._globs for path in told)

    def may_match(self, paths: Collection[str]) -> bool:
        """Also where one that is not wholly told may be such a one."""
        if self.match(paths) or UNTOLD in paths:
            return True
        untold = {(path.partition(UNTOLD)[0], path.count("/")) for path in paths if UNTOLD in path}
        return any(reach.takes_in(*each) for each in untold for reach in self._reaches)


class _Reach:
    """What of a pattern can be held against a path of which only the start is told."""

    __slots__ = ("_prefix", "_slashes")

    def __init__(self, pattern: str) -> None:
        self._prefix = _literal_prefix(pattern)
        self._slashes = None if "**" in pattern or "[" in pattern else pattern.count("/")

    def takes_in(self, told: str, slashes: int) -> bool:
        """Where nothing is told, it is too long for a pattern that has its number of parts."""
        if self._slashes is not None and (self._slashes != slashes or not told):
            return False
        return told.startswith(self._prefix) or self._prefix.startswith(told)


class Arguments:
    """The texts that args_patterns are searched in, bounded."""

    __slots__ = ("cut", "texts")

    def __init__(self, argv: Sequence[str]) -> None:
        joined = to_bytes(" ".join(argv[1:]))
        self.cut = len(joined) > MAX_MATCHED_BYTES or len(argv) > MAX_MATCHED_ARGUMENTS
        self.texts = [joined[:MAX_MATCHED_BYTES]]
        if len(argv) > 2:
            budget = MAX_MATCHED_BYTES
            for argument in argv[1 : MAX_MATCHED_ARGUMENTS + 1]:
                text = to_bytes(argument)[:budget]
                self.texts.append(text)
                budget -= len(text) + 1
                if budget <= 0:
                    break

    def match(self, regex: Regex) -> bool:
        return any(map(regex.found_in, self.texts))


def too_long_to_match(argv: Sequence[str]) -> bool:
    """Whether `Arguments` would be cut, mostly without making them."""
    if len(argv) <= MAX_MATCHED_ARGUMENTS and sum(map(len, argv)) < MAX_MATCHED_BYTES // 8:
        return False
    return Arguments(argv).cut


def is_glob(text: str) -> bool:
    return "*" in text or "?" in text or ("[" in text and "]" in text[text.index("[") :])


def check_regex(pattern: str) -> None:
    _check_length(pattern)
    _compiled(pattern)


def check_regexes(patterns: Sequence[str]) -> None:
    """BadPattern if they are too large together."""
    _compiled(_joined(patterns))


def check_glob(pattern: str) -> None:
    _check_length(pattern)
    if is_glob(pattern):
        _compiled(_translated(pattern))


def check_name_glob(pattern: str) -> None:
    _check_length(pattern)
    if is_glob(pattern):
        _compiled(_translated_name(pattern))


def doubt_about_glob(pattern: str) -> str:
    """What in it is not what it looks like; empty where nothing is."""
    if pattern.startswith("!"):
        return "a ! at the start is a plain character, not a negation"
    for part in re.findall(r"\[!?\]?[^]]*\]|.", pattern, re.DOTALL):
        if part == "[" and pattern.rpartition("/")[2] != "[":  # test(1) has that name
            return "this [ has no closing ] and is a plain character"
        if part.startswith("[^") and part != "[^]":
            return "^ in a set is a plain character; to negate the set, write [!...]"
    if re.search(r"(?<!\$)\{[^{}]*,[^{}]*\}", pattern):
        return "braces are plain characters; list each word"
    return ""


def escape_regex(text: str) -> str:
    return re.escape(text)


def escape_glob(text: str) -> str:
    return text.translate(_SPECIAL_IN_GLOBS)


def to_bytes(text: str) -> bytes:
    """UTF-8, with U+FFFD for bytes that weren't: else `.` would not match them, and one stray byte
    between two words would hide a command from the rule that denies it."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _check_length(pattern: str) -> None:
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise BadPattern(f"longer than {MAX_PATTERN_CHARACTERS} characters")


def _joined(patterns: Sequence[str]) -> str:
    return "|".join(f"(?:{each})" for each in patterns)


@lru_cache(maxsize=None)
def _re2() -> Any:
    import re2

    return re2


@lru_cache(maxsize=1024)
def _compiled(pattern: str) -> Any:
    re2 = _re2()
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.dot_nl = True
    try:
        compiled = re2.compile(pattern, options)
    except UnicodeEncodeError as error:
        raise BadPattern("it contains lone surrogates") from error
    except re2.error as error:
        reason = error.args[0]
        text = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise BadPattern(text) from error
    if compiled.programsize > MAX_PROGRAM_SIZE:
        raise BadPattern("it is too large with its repetitions expanded")
    return compiled


def _literal_prefix(pattern: str) -> str:
    for special in "*?[":
        pattern = pattern.partition(special)[0]
    return pattern


def _translated(pattern: str) -> str:
    parts = [
        _translated_part(part)
        for part in re.findall(r"\*\*/|\*\*|\*|\?|\[!?\]?[^]]*\]|.", pattern, re.DOTALL)
    ]
    return "^" + "".join(parts) + "$"


def _translated_name(pattern: str) -> str:
    parts = [
        {"*": ".*", "?": "."}.get(part) or _translated_part(part)
        for part in re.findall(r"\*|\?|\[!?\]?[^]]*\]|.", pattern, re.DOTALL)
    ]
    return "^" + "".join(parts) + "$"


def _translated_part(part: str) -> str:
    match part:
        case "**/":
            return "(?:.*/)?"
        case "**":
            return ".*"
        case "*":
            return "[^/]*"
        case "?":
            return "[^/]"
    if len(part) > 1:
        negated, members = part[1] == "!", part[1:-1].removeprefix("!")
        return ("[^" if negated else "[") + re.sub(r"([\\\[\]^])", r"\\\1", members) + "]"
    return re.escape(part)
