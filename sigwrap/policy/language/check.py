"""Check nodes against the schema, and make plain values of them.

A check does not stop at the first problem: it notes a wrong value and leaves it out of its group.
So callers build rules only if there are no problems.
"""

from __future__ import annotations

from sigwrap.bare import Any, re
from sigwrap.policy.judge.files import BENEATH, parts_of
from sigwrap.policy.judge.globs import escape_glob
from sigwrap.policy.judge.network import BadDestination, Destination
from sigwrap.policy.judge.signals import signal_number, signal_numbers, words
from sigwrap.policy.language.document import MappingNode, Node, ScalarNode, SequenceNode
from sigwrap.policy.language.fill import FILLED, Filler, Wrong
from sigwrap.policy.language.shapes import (
    PATTERNS,
    Checked,
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
from sigwrap.text import SIZES, SPANS, nearest_word, size_bytes, span_s

MAX_TOTAL_SECONDS = 10 * 365 * 24 * 3600


_EXPECTED = {
    Form.NAME: '{name} may only have letters, digits, ".", "_" and "-"',
    Form.FLAG: "a flag is a letter or a word, such as f or force",
    Form.VARIABLE: 'a variable name has letters, digits and "_", and no digit first',
    Form.DIGEST: "not a SHA-256 digest (64 hexadecimal digits)",
    Form.DATE: "not a date such as 2027-01-31",
    Form.NAME_GLOB: '{name} takes names of variables, without "=" and "$"',
}
_LIKELY_BYTES = 1 << 20
_MERGE_KEY = "<<"
_NO_MERGE_KEYS = (
    "YAML merge keys are not supported (repeat the keys here, or extend a policy that has them)"
)


class Checker(Filler):
    def group(self, node: Node, group: Group) -> Checked:
        checked = Checked(node.place)
        if not isinstance(node, MappingNode):
            self._must_be(node, group.title, "a mapping")
            return checked
        keys = {key.name: key for key in group.keys}
        seen: set[str] = set()
        for key_node, value_node in node.entries:
            name = key_node.text
            key = keys.get(name)
            if name in seen:
                self.note(key_node, "duplicate key", name)
            elif name == _MERGE_KEY:
                self.note(key_node, _NO_MERGE_KEYS, name)
            elif key is None:
                nearest = nearest_word(name, keys)
                is_clear = nearest or group.title == "policy"
                message = "unknown key" if is_clear else f"{group.title} has no such key"
                self.note(key_node, message, name, nearest)
            else:
                if key.old:
                    self._say_what_is_new(key_node, key)
                self._value(checked, key, value_node)
            seen.add(name)
        for key in group.keys:
            if key.old and {key.name, key.new.partition(":")[0]} <= seen:
                self.note(node, f"{key.name} is an old name of {key.new}; use only one")
        for key in group.keys:
            if key.required and seen.isdisjoint((key.name, key.unless, _MERGE_KEY)):
                self.note(node, f'missing key "{key.name}" in {group.title}')
        return checked

    def _say_what_is_new(self, node: Node, key: Key) -> None:
        if key.new:
            message = f"{key.name} is now {key.new} (sigwrap policy check --write updates the file)"
            self.doubt(node, message, "")

    def _value(self, checked: Checked, key: Key, node: Node) -> None:
        checked.places[key.name] = node.place
        if isinstance(key.shape, OneOf) and key.shape.old and isinstance(node, ScalarNode):
            self._say_what_is_new(node, key)
        try:
            checked.values[key.name] = self._shaped(node, key.shape, key.name)
        except Wrong:
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
                raise self._must_be(node, name, "true or false")
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
            raise self._must_be(node, name, f"text{hint}")
        return self._formed(node, node.value, form, name)

    def _formed(self, node: ScalarNode, text: str, form: Form, name: str) -> str:
        if fill := FILLED.get(form.name.lower()):
            filled = fill(self, node, text, name)
            return self._place(node, filled) if form is Form.PLACE else filled
        if form is Form.DIGEST:
            text = text.lower()
        if (expected := _EXPECTED.get(form)) and not re.fullmatch(PATTERNS[form], text):
            raise self.note(node, expected.format(name=name), node.text)
        match form:
            case Form.FILE:
                return self.file(node, text)
            case Form.DESTINATION:
                return self._destination(node, self.substituted(node, text, escape=escape_glob))
            case Form.SUBCOMMAND if text.startswith("-") and text != "-":
                option = f"flags: [{text.lstrip('-')}]"
                raise self.note(node, "an option is not a subcommand", text, option)
            case Form.FLAG:
                return text.lstrip("-")
            case Form.NAME_GLOB:
                return self.glob(node, text, name)
            case Form.SIGNAL | Form.SIGNALS:
                self._check_signal(node, text, form)
        return text

    def _check_signal(self, node: ScalarNode, text: str, form: Form) -> None:
        numbers = signal_numbers(text)
        if numbers is None:
            raise self.note(node, "unknown signal", text, nearest_word(text, words()))
        if form is Form.SIGNAL and signal_number(text) is None:
            raise self.note(node, "one signal is needed, not a group", text)

    def _destination(self, node: ScalarNode, text: str) -> str:
        try:
            Destination(text)
        except BadDestination as problem:
            raise self.note(node, str(problem), node.text) from problem
        return self.glob(node, text, "destinations")

    def _place(self, node: ScalarNode, path: str) -> str:
        parts = parts_of(path)
        if not path.startswith("/") or any(BENEATH in part for part in parts):
            message = "** may only be the last part of a path, as in /dir/**"
            raise self.note(node, message, node.text)
        if {".", ".."} & set(parts):
            raise self.note(node, "a path must not have the parts . and ..", node.text)
        return path

    def _word(self, node: Node, shape: Word, name: str) -> Any:
        if isinstance(node, ScalarNode) and node.text in shape.words:
            return shape.type(node.text)
        nearest = nearest_word(node.text, shape.words) if isinstance(node, ScalarNode) else ""
        raise self._must_be(node, name, f"one of {', '.join(shape.words)}", nearest)

    def _number(self, node: Node, shape: Number, name: str) -> int:
        value = node.value if isinstance(node, ScalarNode) else None
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._must_be(node, name, "a whole number")
        if not shape.minimum <= value <= shape.maximum:
            allowed = (
                str(shape.minimum)
                if shape.minimum == shape.maximum
                else f"between {shape.minimum} and {shape.maximum}"
            )
            raise self._must_be(node, name, allowed)
        return value

    def _duration(self, node: Node, name: str) -> int:
        try:
            seconds = span_s(_scalar_text(node), or_seconds=True)
        except ValueError as error:
            raise self._must_be(node, name, f"a duration such as {SPANS}") from error
        if seconds > MAX_TOTAL_SECONDS:
            raise self._must_be(node, name, "at most ten years")
        if not seconds.is_integer():
            raise self._must_be(node, name, "a whole number of seconds")
        return int(seconds)

    def _size(self, node: Node, name: str) -> int:
        try:
            size = size_bytes(_scalar_text(node))
        except ValueError as error:
            raise self._must_be(node, name, f"a size such as {SIZES}") from error
        if 0 < size < _LIKELY_BYTES and isinstance(node, ScalarNode) and node.text.isdecimal():
            message = f"{name} is only {size} bytes; add a unit"
            self.doubt(node, message, node.text, f"{node.text}M")
        return size

    def _list(self, node: Node, shape: ListOf, name: str) -> tuple[Any, ...]:
        if not isinstance(node, SequenceNode):
            raise self._must_be(node, name, "a list")
        if len(node.items) < shape.minimum:
            raise self.note(node, f"{name} is empty; fill it, or leave it out")
        items = []
        for item in node.items:
            try:
                items.append(self._shaped(item, shape.item, name))
            except Wrong:
                pass
        if len(items) < len(node.items):
            raise Wrong
        return tuple(items)

    def _map(self, node: Node, shape: MapOf, name: str) -> dict[str, Any]:
        if not isinstance(node, MappingNode):
            raise self._must_be(node, name, "a mapping")
        result: dict[str, Any] = {}
        seen: set[str] = set()
        for key_node, value_node in node.entries:
            try:
                if key_node.text == _MERGE_KEY:
                    raise self.note(key_node, _NO_MERGE_KEYS, _MERGE_KEY)
                key = self._formed(key_node, key_node.text, shape.key.form, name)
                if key in seen:
                    raise self.note(key_node, "duplicate key", key)
                seen.add(key)
                result[key] = self._shaped(value_node, shape.value, name)
            except Wrong:
                pass
        return result

    def _option(self, node: Node, shape: OneOf, name: str) -> Shape:
        for option in shape.options:
            if isinstance(node, _node_kind(option)):
                return option
        kinds = " or ".join(_kind_name(_node_kind(option)) for option in shape.options)
        raise self._must_be(node, name, kinds)

    def _must_be(self, node: Node, name: str, what: str, nearest: str = "") -> Wrong:
        if isinstance(node, ScalarNode) and node.text:
            return self.note(node, f"{name} must be {what}", node.text, nearest)
        given = "empty" if isinstance(node, ScalarNode) else _kind_name(type(node))
        return self.note(node, f"{name} must be {what}, not {given}")


def _node_kind(shape: Shape) -> type[Node]:
    match shape:
        case ListOf():
            return SequenceNode
        case MapOf() | Group():
            return MappingNode
        case _:
            return ScalarNode


def _kind_name(kind: type[Node]) -> str:
    return {ScalarNode: "text", SequenceNode: "a list", MappingNode: "a mapping"}[kind]


def _scalar_text(node: Node) -> str:
    return node.text if isinstance(node, ScalarNode) else ""
