"""The shapes of a policy's values, and what a key declares.

Named tuples, not dataclasses: sigwrap makes these at a start under a policy of the user's own, and
a named tuple takes an eighth of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from sigwrap.bare.enum import Enum
from sigwrap.hints import Any
from sigwrap.tuples import NamedTuple


class Form(Enum):
    """The form of a text, as the reference names it. `$` marks forms that take variables."""

    PLAIN = "text"
    TEMPLATE = "text `$`"
    HOST_TEMPLATE = "text `$`, or `${SIGWRAP_HOST:NAME}`"
    NAME = "name"
    VARIABLE = "variable name"
    NAME_GLOB = "glob for a variable name"
    GLOB = "glob `$`"
    PROGRAM = "name or path glob `$`"
    PATH = "path glob `$`"
    FILE = "path `$`"
    DESTINATION = "destination"
    PLACE = "file or directory, glob `$`"
    FLAG = "flag, `f` or `force`"
    SUBCOMMAND = "one to three words, no options"
    REGEX = "RE2 pattern `$`"
    DIGEST = "SHA-256 in hexadecimal"
    SIGNAL = "signal name or number"
    SIGNALS = "signal name, number or group"
    BASE = "shipped policy, or a file next to this one"


# The whole text must match; JSON Schema and Python's `re` read these patterns alike.
PATTERNS: dict[Form, str] = {
    Form.NAME: "[A-Za-z0-9][A-Za-z0-9._-]*",
    Form.VARIABLE: "[A-Za-z_][A-Za-z0-9_]*",
    Form.NAME_GLOB: "[^=$\\x00]+",
    Form.DIGEST: "[0-9a-fA-F]{64}",
    Form.FLAG: "-{0,2}[A-Za-z0-9][A-Za-z0-9_-]*",
    Form.SUBCOMMAND: "(?:-|(?!-)[\\s\\S]*)",
}


class Text(NamedTuple):
    form: Form = Form.PLAIN


class Word(NamedTuple):
    words: tuple[str, ...]
    kind: str = ""  # what the reference says instead of the words
    type: Callable[[str], Any] = str


class Number(NamedTuple):
    minimum: int = 0
    maximum: int = 2**31 - 1


class Flag(NamedTuple):
    pass


class Duration(NamedTuple):
    """A number of seconds, or a number with a unit: 45s, 10m, 1h30m, 2d."""


class Size(NamedTuple):
    """A number of bytes, or a number with a unit: K, M or G."""


class ListOf(NamedTuple):
    item: Shape
    minimum: int = 0


class MapOf(NamedTuple):
    key: Text
    value: Shape


class Group(NamedTuple):
    title: str
    keys: tuple[Key, ...]
    type: Any = None  # the named tuple that is made of it


class OneOf(NamedTuple):
    """At most one option for each YAML kind (scalar, list, mapping): the kind picks the option."""

    options: tuple[Shape, ...]
    old: Shape | None = None  # the option that is written in another way now


Shape = Text | Word | Number | Flag | Duration | Size | ListOf | MapOf | Group | OneOf


class Key(NamedTuple):
    """All there is to say of a key: the checks, the rules, `policy show`, the warnings, the
    reference and the JSON Schema come from it."""

    name: str
    shape: Shape
    meaning: str
    required: bool = False
    unless: str = ""  # it is not required beside this key
    old: bool = False  # read as ever, and left out of the reference
    new: str = ""  # how an old key is written now
    to: str = ""  # the field of the named tuple, if it has another name
    make: Callable[[Any], Any] | None = None  # checked value to field
    show: Callable[[Any], Any] | None = None  # field to the value of a policy
    # Of a condition: whether all that meets the second value meets the first.
    covers: Callable[[Any, Any], bool] | None = None

    @property
    def field(self) -> str:
        return self.to or self.name


def any_of(above: Collection[object], below: Collection[object]) -> bool:
    return not above or (bool(below) and set(below) <= set(above))


def all_of(above: Collection[object], below: Collection[object]) -> bool:
    return set(above) <= set(below)


def same(above: object, below: object) -> bool:
    return above is None or above == below
