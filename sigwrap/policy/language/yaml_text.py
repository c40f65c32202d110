"""YAML text to nodes.

This module reads the parser's events and uses no yaml.Loader. So a policy cannot name a Python
object, sigwrap sees duplicate keys, and `yes` and `010` stay as written. It also bounds the cost
of a hostile file: the C composer recurses without limit, and every loader expands aliases without
limit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

from sigwrap.bare import Protocol
from sigwrap.policy.language.document import (
    MAX_NESTING,
    MAX_NODES,
    MAX_TEXT_CHARACTERS,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    Source,
)
from sigwrap.policy.problems import InvalidPolicy, Place, Problem

_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_document(source: Source) -> Node:
    start = _place(source.name, None)
    if len(source.text) > MAX_TEXT_CHARACTERS:
        raise _invalid(start, f"the policy is longer than {MAX_TEXT_CHARACTERS} characters")
    try:
        return _Composer(source.name, yaml.parse(source.text, Loader=_Loader)).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise _invalid(
            _place(source.name, mark), f"not valid YAML: {error.problem or error.context}"
        ) from error
    except yaml.YAMLError as error:
        raise _invalid(start, f"not valid YAML: {error}".replace("\n", " ")) from error
    except UnicodeEncodeError as error:
        raise _invalid(start, "not valid YAML: it contains lone surrogates") from error


class _Mark(Protocol):
    line: int
    column: int


class _Composer:
    def __init__(self, file: str, events: Iterator[yaml.Event]) -> None:
        self._file = file
        self._events = events
        self._anchors: dict[str, Node] = {}
        self._depth = 0

    def document(self) -> Node:
        event = self._next()
        while isinstance(event, yaml.StreamStartEvent | yaml.DocumentStartEvent):
            event = self._next()
        if isinstance(event, yaml.StreamEndEvent):
            raise self._refuse(event, "the policy is empty")
        root = self._node(event)
        self._next()
        after = self._next()
        if not isinstance(after, yaml.StreamEndEvent):
            raise self._refuse(after, "a policy must be a single YAML document")
        return root

    def _node(self, event: yaml.Event) -> Node:
        if isinstance(event, yaml.AliasEvent):
            anchor = event.anchor or ""
            if anchor not in self._anchors:
                raise self._refuse(event, "unknown alias", anchor)
            return self._anchors[anchor]
        if not isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent):
            raise self._refuse(event, "a value is missing")
        if event.tag is not None and event.tag != "!":
            raise self._refuse(event, "YAML tags are not supported", event.tag)
        node = self._fresh_node(event)
        if node.size > MAX_NODES:
            raise self._refuse(event, f"more than {MAX_NODES} values with aliases expanded")
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _fresh_node(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent) -> Node:
        place = _place(self._file, event.start_mark)
        if isinstance(event, yaml.ScalarEvent):
            return _scalar(place, event.value, plain=event.implicit[0])
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise self._refuse(event, f"nested deeper than {MAX_NESTING} levels")
        node: Node
        if isinstance(event, yaml.SequenceStartEvent):
            items = tuple(self._items())
            node = SequenceNode(place=place, items=items, size=1 + sum(each.size for each in items))
        else:
            entries = tuple(self._entries())
            size = 1 + sum(1 + value.size for _, value in entries)
            node = MappingNode(place=place, entries=entries, size=size)
        self._depth -= 1
        return node

    def _items(self) -> Iterator[Node]:
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            yield self._node(event)

    def _entries(self) -> Iterator[tuple[ScalarNode, Node]]:
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key = self._node(event)
            if not isinstance(key, ScalarNode):
                raise self._refuse(event, "a key must be text")
            yield key, self._node(self._next())

    def _next(self) -> yaml.Event:
        return next(self._events)

    def _refuse(self, event: yaml.Event, message: str, offending: str = "") -> InvalidPolicy:
        return _invalid(_place(self._file, event.start_mark), message, offending)


def _scalar(place: Place, text: str, *, plain: bool) -> ScalarNode:
    value: str | int | bool | None = text
    if plain:
        if text in _WORDS:
            value = _WORDS[text]
        elif _INTEGER.fullmatch(text):
            value = int(text)
    return ScalarNode(place=place, value=value, text=text)


def _place(file: str, mark: _Mark | None) -> Place:
    if mark is None:
        return Place(file=file, line=1, column=1)
    return Place(file=file, line=mark.line + 1, column=mark.column + 1)


def _invalid(place: Place, message: str, offending: str = "") -> InvalidPolicy:
    return InvalidPolicy([Problem(place=place, message=message, offending=offending)])
