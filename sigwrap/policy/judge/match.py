"""Regular expressions, and the paths and arguments of a command that patterns are held against.

RE2, not `re`: patterns come from people and arguments from the wrapped program, and neither may
stall the supervisor. It is imported where a pattern is first compiled: most runs compile none.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterator, Sequence

from sigwrap.bare import Any, lru_cache, re
from sigwrap.policy.judge.globs import (
    MAX_PATTERN_CHARACTERS,
    BadPattern,
    Glob,
    is_glob,
    literal_prefix,
    readable,
)
from sigwrap.policy.judge.tools import options_of, tool_name

MAX_MATCHED_BYTES = 64 * 1024
MAX_MATCHED_ARGUMENTS = 4096  # one search each; what is beyond is searched in the joined text only
UNTOLD = "\0"  # a part of a path that is not known; alone, the path could be any
MAX_PROGRAM_SIZE = 4000  # RE2 instructions: bounds the cost per byte where its DFA gives up


class Regex:
    """Patterns, of which one must be found in a text.

    They are compiled when they are first needed, which most never are. `check_regexes` finds out
    earlier whether they can be.
    """

    __slots__ = ("_pattern", "_search")

    def __init__(self, patterns: Sequence[str]) -> None:
        self._pattern = _joined(patterns)
        self._search: Any = None

    def found_in(self, text: bytes) -> bool:
        if self._search is None:
            self._search = _compiled(self._pattern).search
        return self._search(text) is not None


class Paths:
    """Paths and globs; a path matches if it matches one of them."""

    __slots__ = ("_globs", "_literals", "_patterns")

    def __init__(self, patterns: Sequence[str]) -> None:
        self._patterns = patterns
        self._literals = frozenset(each for each in patterns if not is_glob(each))
        self._globs = tuple(Glob(each) for each in patterns if is_glob(each))

    @classmethod
    def beneath(cls, patterns: Sequence[str]) -> Paths:
        """Match files, and directories with everything below, as file rules do."""
        bases = [each.removesuffix("/**") for each in patterns]
        return cls([*(each or "/" for each in bases), *(f"{each}/**" for each in bases)])

    def match(self, paths: Collection[str]) -> bool:
        """Return whether one of the paths matches."""
        if not self._literals.isdisjoint(paths):
            return True
        known = [path for path in paths if UNTOLD not in path]
        return any(glob.matches(path) for glob in self._globs for path in known)

    def may_match(self, paths: Collection[str]) -> bool:
        """Return whether one of the paths matches, or could with what is not known of it."""
        if self.match(paths) or UNTOLD in paths:
            return True
        starts = {(path.partition(UNTOLD)[0], path.count("/")) for path in paths if UNTOLD in path}
        return any(_can_match(each, *start) for start in starts for each in self._patterns)


def _can_match(pattern: str, start: str, slashes: int) -> bool:
    """Return whether a path of which only the start and the number of parts are known can match.

    If nothing is known, it is too long for a pattern that has its number of parts.
    """
    has_its_number = "**" not in pattern and "[" not in pattern
    if has_its_number and (pattern.count("/") != slashes or not start):
        return False
    prefix = literal_prefix(pattern)
    return start.startswith(prefix) or prefix.startswith(start)


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
    """Return whether `Arguments` would be cut, mostly without making them."""
    if len(argv) <= MAX_MATCHED_ARGUMENTS and sum(map(len, argv)) < MAX_MATCHED_BYTES // 8:
        return False
    return Arguments(argv).cut


def check_regex(pattern: str) -> None:
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise BadPattern(f"longer than {MAX_PATTERN_CHARACTERS} characters")
    _compiled(pattern)


def check_regexes(patterns: Sequence[str]) -> None:
    """Raise BadPattern if they are too large together."""
    _compiled(_joined(patterns))


def escape_regex(text: str) -> str:
    return re.escape(text)


def to_bytes(text: str) -> bytes:
    return readable(text).encode()


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


# Paths in the arguments of a command, by text alone: no file is opened.

MAX_CHARACTERS = 4096  # PATH_MAX

_GLOB_TAIL = re.compile(r"(?:[.]?\[[^/]*\]\*?|[.]?[*?]+|\{[.,*]+\})")
_READS_FROM = {"dd": "if="}
_STARTS_HERE = frozenset({"find"})  # without a path


def arguments_as_paths(
    condition: str, name: str, argv: Sequence[str], folder: str, home: str
) -> frozenset[str]:
    """Return the absolute paths for `paths`, `sources` or `outside`.

    Parts that depend on an unknown `folder` are UNTOLD.
    """
    arguments = list(argv[1 : MAX_MATCHED_ARGUMENTS + 1])
    if condition == "sources":
        arguments = _sources(arguments)
    elif condition == "outside":
        arguments = _without_options(name, arguments)
    found: set[str] = set()
    here = parts_of(folder)
    if name in _STARTS_HERE and (not arguments or arguments[0][:1] in ("-", "(", "!")):
        found.add(resolved(".", here, home))
    skipped = _READS_FROM.get(name)
    for argument in arguments:
        if not argument or len(argument) > MAX_CHARACTERS:
            continue
        if skipped is not None and argument.startswith(skipped):
            continue
        for text in _paths_in(argument):
            found.add(resolved(text, here, home))
    return frozenset(found)


def resolved(text: str, here: list[str], home: str) -> str:
    """Resolve a path against `here` (see parts_of), by text alone."""
    if text == "~" or text.startswith("~/"):
        text = home + text[1:]
    parts = [""] if text.startswith("/") else list(here)
    for part in text.split("/"):
        if part == "..":
            if len(parts) > 1:
                parts.pop()
            elif parts == [UNTOLD]:
                return UNTOLD
        elif part not in ("", "."):
            parts.append(part)
            parts = _through_proc(parts, here)
    while len(parts) > 1 and _GLOB_TAIL.fullmatch(parts[-1]):
        del parts[-1]
    return "/".join(parts if len(parts) > 1 else [*parts, ""])


def parts_of(folder: str) -> list[str]:
    """Split a folder into parts; the first is empty, as in any absolute path."""
    if not folder:
        return [UNTOLD]
    return ["", *filter(None, posixpath.normpath(folder).split("/"))]


def _paths_in(argument: str) -> Iterator[str]:
    yield argument
    _, equals, value = argument.partition("=")
    if equals and value:
        yield value


def _without_options(name: str, arguments: list[str]) -> list[str]:
    """Leave out options, but not what can be a path in them: `--file=x`, `-C/x`, `-tx`."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    kept = []
    for argument in arguments[:end]:
        if argument == "-" or not argument.startswith("-"):
            kept.append(argument)
        else:
            kept += [argument.partition("=")[2], _attached(name, argument)]
    return kept + arguments[end + 1 :]


def _attached(name: str, option: str) -> str:
    """Return the value of a short option in the same word, or "".

    If the option is not known, that is what begins with a slash, or `..`.
    """
    with_value = options_of(tool_name(name)).with_value
    for at, letter in enumerate("" if option.startswith("--") else option):
        if letter in with_value:
            return option[at + 1 :]
    if "=" in option:
        return ""
    return option[option.index("/") :] if "/" in option else ".." * option.endswith("..")


def _sources(arguments: list[str]) -> list[str]:
    """Drop the destination: the last argument, or the value of `-t`."""
    for position, argument in enumerate(arguments):
        if argument == "--":
            break
        option, equals, _ = argument.partition("=")
        is_long = len(option) > 3 and "--target-directory".startswith(option)
        if is_long and equals:
            return arguments[:position] + arguments[position + 1 :]
        is_short = re.fullmatch("-[a-su-zA-Z]*t(.*)", argument)
        if is_long or (is_short and not is_short[1]):
            return arguments[:position] + arguments[position + 2 :]
        if is_short:
            return arguments[:position] + arguments[position + 1 :]
    return arguments[:-1]


def _through_proc(parts: list[str], here: list[str]) -> list[str]:
    """Resolve /proc/PID/root to the root folder and /proc/self/cwd to `here`."""
    if len(parts) < 4 or parts[1] != "proc" or parts[-1] not in ("root", "cwd"):
        return parts
    process = parts[2:-1]
    if process[0] not in ("self", "thread-self") and not process[0].isdigit():
        return parts
    if len(process) not in (1, 3) or (len(process) == 3 and process[1] != "task"):
        return parts
    return [""] if parts[-1] == "root" else list(here)
