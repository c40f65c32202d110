"""The shapes of a policy's values, what a key declares, and the fields that are made of it.

Named tuples, not dataclasses: sigwrap makes these at a start under a policy of the user's own, and
a named tuple takes an eighth of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from sigwrap.bare import Any, Enum, NamedTuple
from sigwrap.policy.judge.request import TargetType
from sigwrap.policy.judge.rules import Depth, PidRange, ProcessPattern, Target
from sigwrap.policy.judge.signals import ALL, signal_name, signal_number, signal_numbers
from sigwrap.policy.problems import Place


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
    DATE = "date, `2027-01-31`"


# The whole text must match; JSON Schema and Python's `re` read these patterns alike.
PATTERNS: dict[Form, str] = {
    Form.NAME: "[A-Za-z0-9][A-Za-z0-9._-]*",
    Form.VARIABLE: "[A-Za-z_][A-Za-z0-9_]*",
    Form.NAME_GLOB: "[^=$\\x00]+",
    Form.DIGEST: "[0-9a-fA-F]{64}",
    Form.FLAG: "-{0,2}[A-Za-z0-9][A-Za-z0-9_-]*",
    Form.SUBCOMMAND: "(?:-|(?!-)[\\s\\S]*)",
    Form.DATE: "[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])",
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
    """Declare a key: the checks, the rules, `policy show`, the warnings, the reference and the JSON
    Schema come from it."""

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
    # For a condition: whether all that meets the second value meets the first.
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


class Checked:
    """A mapping's values by key, each with its place; what was absent or wrong is not there."""

    __slots__ = ("place", "places", "values")

    def __init__(self, place: Place) -> None:
        self.place = place
        self.values: dict[str, Any] = {}
        self.places: dict[str, Place] = {}

    def get(self, key: str, default: Any = None) -> Any:
        return self.values.get(key, default)

    def place_of(self, key: str) -> Place:
        return self.places.get(key, self.place)


def made(checked: Checked, group: Group) -> Any:
    """Return the rule or section that a checked mapping describes."""
    place = {"place": checked.place} if "place" in group.type._fields else {}
    return group.type(**place, **fields(checked, group))


def fields(checked: Checked, group: Group) -> dict[str, Any]:
    return {
        key.field: _field(checked.values[key.name], key)
        for key in group.keys
        if key.name in checked.values
    }


def _field(value: Any, key: Key) -> Any:
    if key.make is not None:
        return key.make(value)
    return made(value, key.shape) if isinstance(key.shape, Group) else value


def entries(value: Any, group: Group) -> dict[str, Any]:
    """Return the keys and values of a rule or section, without what is left at its default."""
    shown = {}
    for key in group.keys:
        if (key.old and key.new) or key.field not in value._fields:  # `any`: see policy/tools/show
            continue
        given = getattr(value, key.field)
        if key.required or given != value._field_defaults.get(key.field):
            shown[key.name] = _shown(given, key.shape) if key.show is None else key.show(given)
    return shown


def _shown(value: Any, shape: Shape) -> Any:
    match value:
        case Enum():
            return value.value
        case frozenset():
            return sorted(value)
        case tuple() if isinstance(shape, Group):
            return entries(value, shape)
        case tuple():
            return [_shown(each, shape) for each in value]
        case _:
            return value


def is_deeper(above: Depth | None, below: Depth | None) -> bool:
    """Return whether the second range of depths is within the first."""
    if above is None:
        return True
    least, last = below or Depth()
    return above.min <= least and (above.max is None or (last is not None and last <= above.max))


def signals(words: tuple[str, ...]) -> frozenset[int]:
    return frozenset().union(*(signal_numbers(word) or () for word in words))


def shown_signals(numbers: frozenset[int]) -> list[str]:
    return ["@all"] if numbers == ALL else list(map(signal_name, sorted(numbers)))


def redirect_signal(value: str | Checked) -> int:
    return signal_number(value if isinstance(value, str) else value.get("signal")) or 0


def targets(value: Any) -> tuple[Target, ...]:
    return tuple(map(_target, listed(value)))


def _target(target: str | Checked) -> Target:
    if isinstance(target, str):
        return TargetType(target)
    match target.get("type"):
        case "process":
            return ProcessPattern(glob=target.get("pattern"))
        case "pid_range":
            return PidRange(minimum=target.get("min"), maximum=target.get("max"))
        case word if "pattern" in target.places:
            return ProcessPattern(glob=target.get("pattern"), kind=TargetType(word))
        case word:
            return TargetType(word)


def shown_targets(given: tuple[Target, ...]) -> list[Any]:
    return list(map(_shown_target, given))


def _shown_target(target: Target) -> Any:
    match target:
        case TargetType():
            return target.value
        case ProcessPattern(glob=glob, kind=kind):
            return {"type": "process" if kind is None else kind.value, "pattern": glob}
        case PidRange():
            return {"type": "pid_range", "min": target.minimum, "max": target.maximum}


def listed(value: Any) -> tuple[Any, ...]:
    if value is None:
        return ()
    return value if isinstance(value, tuple) else (value,)
