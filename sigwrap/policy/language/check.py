"""Checks nodes against the schema, and makes plain values of them.

A check doesn't stop at the first problem: a value that is wrong is noted and left out of its group.
So rules must be built from the groups only where no problem was noted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from posixpath import normpath

from sigwrap.amounts import SIZES, SPANS, size_bytes, span_s
from sigwrap.hints import Any
from sigwrap.policy.judge.match import (
    BadPattern,
    check_glob,
    check_name_glob,
    check_regex,
    doubt_about_glob,
    escape_glob,
    escape_regex,
)
from sigwrap.policy.judge.signals import signal_number, signal_numbers, words
from sigwrap.policy.language.document import MappingNode, Node, ScalarNode, SequenceNode
from sigwrap.policy.language.schema import (
    PATTERNS,
    Duration,
    Flag,
    Form,
    Group,
    Key,
    ListOf,
    MapOf,
    Number,
    OneOf,
    Shape,
    Size,
    Text,
    Word,
)
from sigwrap.policy.language.variables import (
    BUILT_IN,
    MAX_SUBSTITUTED,
    Room,
    TooLong,
    UnknownVariable,
    substitute,
)
from sigwrap.policy.problems import Place, Problem, Severity, nearest_word

MAX_TOTAL_SECONDS = 10 * 365 * 24 * 3600


_LIKELY_BYTES = 1 << 20
_MERGE_KEY = "<<"
_NO_MERGE_KEYS = (
    "merge keys of YAML are not supported: write the keys out here, or put them into a policy that "
    "this one extends; an alias (*name) stands for a whole value"
)
_SAYS_WHERE = ("/", "**")


class Checked:
    """A mapping's values by key, each with its place; what was absent or wrong is not there."""

    __slots__ = ("place", "places", "values")

    def __init__(
        self,
        *,
        place: Place,
        values: dict[str, Any] | None = None,
        places: dict[str, Place] | None = None,
    ) -> None:
        self.place = place
        self.values = {} if values is None else values
        self.places = {} if places is None else places

    def get(self, key: str, default: Any = None) -> Any:
        return self.values.get(key, default)

    def place_of(self, key: str) -> Place:
        return self.places.get(key, self.place)


class _Wrong(Exception):
    """A problem was noted; the value is left out."""


class Checker:
    def __init__(self, variables: Mapping[str, str], room: Room, *, shipped: bool = False) -> None:
        """`shipped`: only patterns with variables in them are compiled, for compiling takes time at
        each start."""
        self._variables = variables
        self._room = room
        self._shipped = shipped
        self._is_full = False
        self.problems: list[Problem] = []
        self.warnings: list[Problem] = []

    def group(self, node: Node, group: Group) -> Checked:
        checked = Checked(place=node.place)
        if not isinstance(node, MappingNode):
            self._note(node, f"{group.title} is a mapping of keys", _shown(node))
            return checked
        keys = {key.name: key for key in group.keys}
        seen: set[str] = set()
        for key_node, value_node in node.entries:
            name = key_node.text
            key = keys.get(name)
            if name in seen:
                self._note(key_node, "the same key twice", name)
            elif name == _MERGE_KEY:
                self._note(key_node, _NO_MERGE_KEYS, name)
            elif key is None:
                self._note(
                    key_node, f"unknown key in {group.title}", name, nearest_word(name, keys)
                )
            else:
                self._value(checked, key, value_node)
            seen.add(name)
        for key in group.keys:
            if key.required and key.name not in seen and _MERGE_KEY not in seen:
                self._note(node, f"{group.title} needs the key {key.name}")
        return checked

    def _value(self, checked: Checked, key: Key, node: Node) -> None:
        checked.places[key.name] = node.place
        try:
            checked.values[key.name] = self._shaped(node, key.shape, key.name)
        except _Wrong:
            pass

    def _shaped(self, node: Node, shape: Shape, name: str) -> Any:
        match shape:
            case Text():
                return self._text(node, shape.form, name)
            case Word():
                return self._word(node, shape, name)
            case Number():
                return self._number(node, shape, name)
            case Flag():
                if isinstance(node, ScalarNode) and isinstance(node.value, bool):
                    return node.value
                raise self._note(node, f"{name} is true or false", _shown(node))
            case Duration():
                return self._duration(node, name)
            case Size():
                return self._size(node, name)
            case ListOf():
                return self._list(node, shape, name)
            case MapOf():
                return self._map(node, shape, name)
            case Group():
                return self.group(node, shape)
            case OneOf():
                return self._shaped(node, self._option(node, shape, name), name)

    def _text(self, node: Node, form: Form, name: str) -> str:
        if not isinstance(node, ScalarNode) or not isinstance(node.value, str):
            # A signal may be given by its number.
            if isinstance(node, ScalarNode) and form in (Form.SIGNAL, Form.SIGNALS):
                return self._formed(node, node.text, form, name)
            hint = "; put it in quotes" if isinstance(node, ScalarNode) and node.text else ""
            raise self._note(node, f"{name} is a text{hint}", _shown(node))
        return self._formed(node, node.value, form, name)

    def _formed(self, node: ScalarNode, text: str, form: Form, name: str) -> str:
        match form:  # the most frequent first
            case Form.PROGRAM | Form.PATH:
                glob = self._substituted(node, text, form=Form.GLOB)
                if not glob.startswith(_SAYS_WHERE) and (form is Form.PATH or "/" in glob):
                    glob = self._rooted(node, glob)
                return self._glob(node, glob, name)
            case Form.SUBCOMMAND:
                return self._subcommand(node, text)
            case Form.PLAIN | Form.BASE:
                return text
            case Form.TEMPLATE:
                return self._substituted(node, text)
            case Form.HOST_TEMPLATE:
                return self._substituted(node, text, host_allowed=True)
            case Form.NAME:
                return self._expected(node, text, form, f"{name} is made of letters, digits, . _ -")
            case Form.VARIABLE:
                return self._expected(node, text, form, "a variable is letters, digits and _")
            case Form.DIGEST:
                lowered = text.lower()
                return self._expected(node, lowered, form, "a SHA-256 is 64 hexadecimal digits")
            case Form.NAME_GLOB:
                return self._name_glob(node, text, name)
            case Form.GLOB:
                return self._glob(node, self._substituted(node, text, form=form), name)
            case Form.REGEX:
                return self._regex(node, self._substituted(node, text, form=form))
            case Form.SIGNAL:
                known = signal_number(text) is not None
                if not known and signal_numbers(text) is not None:
                    raise self._note(node, "one signal, not a group", text)
            case Form.SIGNALS:
                known = signal_numbers(text) is not None
        if not known:
            raise self._note(node, "unknown signal", text, nearest_word(text, words()))
        return text

    def _substituted(
        self, node: ScalarNode, text: str, *, form: Form = Form.TEMPLATE, host_allowed: bool = False
    ) -> str:
        if "$" not in text:
            return text
        escape = {Form.GLOB: escape_glob, Form.REGEX: escape_regex}.get(form, str)
        try:
            return substitute(
                text, self._variables, self._room, escape=escape, host_allowed=host_allowed
            )
        except (UnknownVariable, TooLong) as error:
            if not (self._is_full and isinstance(error, TooLong)):
                self.problems.append(variable_problem(node.place, error, self._variables))
            self._is_full |= isinstance(error, TooLong)
            raise _Wrong from error

    def _rooted(self, node: ScalarNode, glob: str) -> str:
        """What a program or an argument is held against is absolute."""
        first, _, rest = glob.partition("/")
        if not first.startswith("~"):
            variable, rest = "PROJECT_ROOT", glob
        elif first == "~":
            variable = "HOME"
        else:
            raise self._note(node, "whose home folder that is isn't known: write its path", glob)
        folder = self._substituted(node, f"${{{variable}}}", form=Form.GLOB)
        return normpath(f"{folder}/{rest}") if rest else folder

    def _subcommand(self, node: ScalarNode, text: str) -> str:
        if text == "-" or not text.startswith("-"):
            return text
        pattern = escape_regex(text).replace("\\-", "-")
        right = f"args_patterns: ['^{pattern}(=|$)']"
        raise self._note(node, "an option is no subcommand", text, right)

    def _glob(self, node: ScalarNode, glob: str, name: str) -> str:
        if not glob:
            raise self._note(node, f"{name} can't be empty")
        if self._shipped and glob == node.text:
            return glob
        try:
            check_glob(glob)
        except BadPattern as error:
            raise self._note(node, f"a bad glob, {error}", node.text) from error
        self._doubt(node, doubt_about_glob(node.text), node.text)
        return glob

    def _name_glob(self, node: ScalarNode, glob: str, name: str) -> str:
        expected = f"{name} has names of variables, without = and $"
        self._expected(node, glob, Form.NAME_GLOB, expected)
        try:
            check_name_glob(glob)
        except BadPattern as error:
            raise self._note(node, f"a bad glob, {error}", node.text) from error
        self._doubt(node, doubt_about_glob(glob), glob)
        return glob

    def _regex(self, node: ScalarNode, pattern: str) -> str:
        if self._shipped and pattern == node.text:
            return pattern
        try:
            check_regex(pattern)
        except BadPattern as error:
            raise self._note(node, f"a bad regular expression, {error}", node.text) from error
        return pattern

    def _expected(self, node: ScalarNode, text: str, form: Form, message: str) -> str:
        if not re.fullmatch(PATTERNS[form], text):
            raise self._note(node, message, node.text)
        return text

    def _word(self, node: Node, shape: Word, name: str) -> str:
        if isinstance(node, ScalarNode) and node.text in shape.words:
            return node.text
        nearest = nearest_word(node.text, shape.words) if isinstance(node, ScalarNode) else ""
        raise self._note(node, f"{name} is one of {', '.join(shape.words)}", _shown(node), nearest)

    def _number(self, node: Node, shape: Number, name: str) -> int:
        value = node.value if isinstance(node, ScalarNode) else None
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._note(node, f"{name} is a whole number", _shown(node))
        if not shape.minimum <= value <= shape.maximum:
            allowed = (
                f"only {shape.minimum}"
                if shape.minimum == shape.maximum
                else f"between {shape.minimum} and {shape.maximum}"
            )
            raise self._note(node, f"{name} is out of range ({allowed})", _shown(node))
        return value

    def _duration(self, node: Node, name: str) -> int:
        try:
            seconds = span_s(_scalar_text(node), or_seconds=True)
        except ValueError as error:
            message = f"{name} is a span of time, like {SPANS}"
            raise self._note(node, message, _shown(node)) from error
        if seconds > MAX_TOTAL_SECONDS:
            raise self._note(node, f"{name} is longer than ten years", _shown(node))
        if not seconds.is_integer():
            raise self._note(node, f"{name} is in whole seconds", _shown(node))
        return int(seconds)

    def _size(self, node: Node, name: str) -> int:
        try:
            size = size_bytes(_scalar_text(node))
        except ValueError as error:
            raise self._note(node, f"{name} is a size, like {SIZES}", _shown(node)) from error
        if 0 < size < _LIKELY_BYTES and isinstance(node, ScalarNode) and node.text.isdecimal():
            message = f"{name} of {size} bytes, which is hardly meant: a size has a unit"
            self._doubt(node, message, node.text, f"{node.text}M")
        return size

    def _list(self, node: Node, shape: ListOf, name: str) -> tuple[Any, ...]:
        if not isinstance(node, SequenceNode):
            raise self._note(node, f"{name} is a list", _shown(node))
        if len(node.items) < shape.minimum:
            raise self._note(node, f"{name} is empty; leave it out, or fill it")
        items = []
        for item in node.items:
            try:
                items.append(self._shaped(item, shape.item, name))
            except _Wrong:
                pass
        if len(items) < len(node.items):
            raise _Wrong
        return tuple(items)

    def _map(self, node: Node, shape: MapOf, name: str) -> dict[str, Any]:
        if not isinstance(node, MappingNode):
            raise self._note(node, f"{name} is a mapping of names", _shown(node))
        result: dict[str, Any] = {}
        seen: set[str] = set()
        for key_node, value_node in node.entries:
            try:
                if key_node.text == _MERGE_KEY:
                    raise self._note(key_node, _NO_MERGE_KEYS, _MERGE_KEY)
                key = self._formed(key_node, key_node.text, shape.key.form, name)
                if key in seen:
                    raise self._note(key_node, "the same key twice", key)
                seen.add(key)
                result[key] = self._shaped(value_node, shape.value, name)
            except _Wrong:
                pass
        return result

    def _option(self, node: Node, shape: OneOf, name: str) -> Shape:
        for option in shape.options:
            if isinstance(node, _node_kind(option)):
                return option
        kinds = " or ".join(_kind_name(_node_kind(option)) for option in shape.options)
        raise self._note(node, f"{name} is {kinds}", _shown(node))

    def _note(self, node: Node, message: str, offending: str = "", nearest: str = "") -> _Wrong:
        self.problems.append(
            Problem(place=node.place, message=message, offending=offending, nearest=nearest)
        )
        return _Wrong(message)

    def _doubt(self, node: Node, message: str, offending: str, nearest: str = "") -> None:
        """Where there is a message."""
        if message and not self._shipped:
            warning = Problem(node.place, message, offending, nearest, Severity.WARNING)
            self.warnings.append(warning)


def variable_problem(
    place: Place, error: UnknownVariable | TooLong, variables: Mapping[str, str]
) -> Problem:
    if isinstance(error, TooLong):
        most = f"what variables stand for is more than {MAX_SUBSTITUTED} characters, all together"
        return Problem(place=place, message=most)
    has_no_value = error.name in BUILT_IN
    nearest = "" if has_no_value else nearest_word(error.name, {*variables, *BUILT_IN})
    return Problem(
        place=place,
        message="a variable without a value here" if has_no_value else "unknown variable",
        offending=error.reference,
        nearest=f"${{{nearest}}}" if nearest else "",
    )


def _node_kind(shape: Shape) -> type[Node]:
    match shape:
        case ListOf():
            return SequenceNode
        case MapOf() | Group():
            return MappingNode
        case _:
            return ScalarNode


def _kind_name(kind: type[Node]) -> str:
    return {ScalarNode: "a word", SequenceNode: "a list", MappingNode: "a mapping"}[kind]


def _scalar_text(node: Node) -> str:
    return node.text if isinstance(node, ScalarNode) else ""


def _shown(node: Node) -> str:
    match node:
        case ScalarNode():
            return node.text or "nothing"
        case SequenceNode():
            return "a list"
        case MappingNode():
            return "a mapping"
