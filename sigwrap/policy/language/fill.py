"""Texts of a policy: their variables filled in, and the checks of the result.

`${NAME}` and `${NAME:-default}` are variables. The caller hands in the values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from posixpath import normpath

from sigwrap.policy.judge.globs import (
    MAX_PATTERN_CHARACTERS,
    BadPattern,
    check_glob,
    doubt_about_glob,
    escape_glob,
)
from sigwrap.policy.judge.match import check_regex, escape_regex
from sigwrap.policy.language.document import Node, ScalarNode
from sigwrap.policy.problems import Place, Problem, Severity
from sigwrap.text import nearest_word

MAX_SUBSTITUTED = 1 << 20  # characters

BUILT_IN = ("PROJECT_ROOT", "GIT_COMMON_DIR", "HOME", "USER", "TMPDIR", "USERS_PROC")

# ${SIGWRAP_HOST:NAME} stays in the text: sigwrap shows and logs policies, but no secrets.
_HOST = "SIGWRAP_HOST"
_SAYS_WHERE = ("/", "**")
_NOWHERE = "/nonexistent"  # shipped policies load without a home directory too


class Wrong(Exception):
    """A problem was noted; the value is left out."""


class Filler:
    def __init__(self, variables: Mapping[str, str], room: Room, *, shipped: bool = False) -> None:
        """Tests compile the patterns of a shipped policy, which would slow each start."""
        self._variables = variables
        self._room = room
        self._shipped = shipped
        self._is_full = False
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []

    def path(self, node: ScalarNode, text: str, name: str, *, may_be_a_name: bool = False) -> str:
        glob = self.substituted(node, text, escape=escape_glob)
        if not glob.startswith(_SAYS_WHERE) and (not may_be_a_name or "/" in glob):
            glob = self._rooted(node, glob)
        return self.glob(node, glob, name)

    def file(self, node: ScalarNode, text: str) -> str:
        """Return a path that is no glob."""
        path = self.substituted(node, text)
        return path if path.startswith("/") else self._rooted(node, path, escape=str)

    def substituted(
        self,
        node: ScalarNode,
        text: str,
        *,
        escape: Callable[[str], str] = str,
        host_allowed: bool = False,
    ) -> str:
        if "$" not in text:
            return text
        try:
            return substitute(
                text, self._variables, self._room, escape=escape, host_allowed=host_allowed
            )
        except (UnknownVariable, TooLong) as error:
            if not (self._is_full and isinstance(error, TooLong)):
                self.problems.append(variable_problem(node.place, error, self._variables))
            self._is_full |= isinstance(error, TooLong)
            raise Wrong from error

    def _rooted(
        self, node: ScalarNode, glob: str, *, escape: Callable[[str], str] = escape_glob
    ) -> str:
        """Return an absolute path or glob."""
        first, _, rest = glob.partition("/")
        if not first.startswith("~"):
            variable, rest = "PROJECT_ROOT", glob
        elif first == "~":
            variable = "HOME"
        else:
            raise self.note(node, "this home directory is not known; write its full path", glob)
        reference = f"${{{variable}:-{_NOWHERE}}}" if self._shipped else f"${{{variable}}}"
        folder = self.substituted(node, reference, escape=escape)
        return normpath(f"{folder}/{rest}") if rest else folder

    def glob(self, node: ScalarNode, glob: str, name: str) -> str:
        if not glob:
            raise self.note(node, f"{name} must not be empty")
        # A good glob stays good with other values, which it takes literally.
        if self._shipped and len(glob) <= MAX_PATTERN_CHARACTERS:
            return glob
        try:
            check_glob(glob)
        except BadPattern as error:
            raise self.note(node, f"bad glob ({error})", node.text) from error
        if not self._shipped:
            self.doubt(node, doubt_about_glob(node.text), node.text)
        return glob

    def regex(self, node: ScalarNode, text: str) -> str:
        pattern = self.substituted(node, text, escape=escape_regex)
        if self._shipped and pattern == node.text:
            return pattern
        try:
            check_regex(pattern)
        except BadPattern as error:
            raise self.note(node, f"bad regular expression ({error})", node.text) from error
        return pattern

    def note(self, node: Node, message: str, offending: str = "", nearest: str = "") -> Wrong:
        self.problems.append(
            Problem(place=node.place, message=message, offending=offending, nearest=nearest)
        )
        return Wrong(message)

    def doubt(self, node: Node, message: str, offending: str, nearest: str = "") -> None:
        """Add a warning, if there is a message."""
        if message and not self._shipped:
            warning = Problem(node.place, message, offending, nearest, Severity.WARNING)
            self.warnings.append(warning)


def variable_problem(
    place: Place, error: UnknownVariable | TooLong, variables: Mapping[str, str]
) -> Problem:
    if isinstance(error, TooLong):
        most = f"variables expand to more than {MAX_SUBSTITUTED} characters in total"
        return Problem(place=place, message=most)
    has_no_value = error.name in BUILT_IN
    nearest = "" if has_no_value else nearest_word(error.name, {*variables, *BUILT_IN})
    return Problem(
        place=place,
        message="this variable has no value here" if has_no_value else "unknown variable",
        offending=error.reference,
        nearest=f"${{{nearest}}}" if nearest else "",
    )


# How a key fills in its text, by the name of the text's form.
FILLED: dict[str, Callable[[Filler, ScalarNode, str, str], str]] = {
    "path": Filler.path,
    "place": Filler.path,
    "program": lambda filler, node, text, name: filler.path(node, text, name, may_be_a_name=True),
    "regex": lambda filler, node, text, _name: filler.regex(node, text),
    "template": lambda filler, node, text, _name: filler.substituted(node, text),
    "host_template": lambda filler, node, text, _name: filler.substituted(
        node, text, host_allowed=True
    ),
    "glob": lambda filler, node, text, name: filler.glob(
        node, filler.substituted(node, text, escape=escape_glob), name
    ),
}


class UnknownVariable(Exception):
    """Report `reference` at its place in the policy."""

    def __init__(self, reference: str) -> None:
        super().__init__(reference)
        self.reference = reference

    @property
    def name(self) -> str:
        return self.reference.removeprefix("${").removesuffix("}").partition(":")[0]


class TooLong(Exception):
    """Report it at its place in the policy."""


class Room:
    """The length that all texts of a policy with variables may have together.

    Without it, variables that each contain another one twice would grow exponentially.
    """

    def __init__(self, characters: int = MAX_SUBSTITUTED) -> None:
        self._left = characters

    def take(self, characters: int) -> None:
        self._left -= characters
        if self._left < 0:
            raise TooLong


def substitute(
    text: str,
    values: Mapping[str, str],
    room: Room,
    *,
    escape: Callable[[str], str] = str,
    host_allowed: bool = False,
) -> str:
    """Fill in variables. `escape` quotes a value for a regex or a glob, but no default."""
    if "${" not in text:
        return text
    room.take(len(text))
    filled, rest = "", text
    while "${" in rest:
        before, _, rest = rest.partition("${")
        inside, closed, rest = rest.partition("}")
        reference = f"${{{inside}{closed}"
        is_left = host_allowed and closed and _is_of_the_host(inside)
        value = reference if is_left else _value(reference, inside, closed, values, room, escape)
        filled += before + value
    return filled + rest


def _value(
    reference: str,
    inside: str,
    closed: str,
    values: Mapping[str, str],
    room: Room,
    escape: Callable[[str], str],
) -> str:
    name, has_default, default = inside.partition(":-")
    if not closed or not _is_name(name) or "{" in default:
        raise UnknownVariable(reference)
    value = values.get(name)
    if has_default and not value:
        return default
    if value is None:
        raise UnknownVariable(reference)
    room.take(len(value))
    return escape(value)


def _is_of_the_host(inside: str) -> bool:
    prefix, _, name = inside.partition(":")
    return prefix == _HOST and _is_name(name)


def _is_name(word: str) -> bool:
    return word.isascii() and word.isidentifier()
