"""A policy's text to nodes, each with its place: file, line and column.

A shipped policy was read beforehand (sigwrap/policy/shipped), all but its tests: no run has to wait
until YAML's modules are imported, and such a text is read.
"""

from __future__ import annotations

import json
from hashlib import blake2b

from sigwrap.hints import Any
from sigwrap.policy.problems import Place
from sigwrap.tuples import NamedTuple

MAX_TEXT_CHARACTERS = 256 * 1024
MAX_NESTING = 16
MAX_NODES = 50_000  # counted with every alias expanded


class ScalarNode(NamedTuple):
    place: Place
    value: str | int | bool | None
    text: str
    size: int = 1


class SequenceNode(NamedTuple):
    place: Place
    items: tuple[Node, ...]
    size: int = 0  # of what was read beforehand, it is counted no more


class MappingNode(NamedTuple):
    place: Place
    entries: tuple[tuple[ScalarNode, Node], ...]
    size: int = 0


Node = ScalarNode | SequenceNode | MappingNode


class Source(NamedTuple):
    """The text of a policy, and what to call it in messages."""

    name: str
    text: str
    shipped: bool = False  # its patterns are known to be good: tests compile them
    for_a_run: bool = False  # which has no use for its tests


SHIPPED = ("agent-default", "agent-strict", "agent-observe", "ci")


def is_shipped(name: str, text: str) -> bool:
    """Whether this very text is."""
    if name.removesuffix(".yaml") not in SHIPPED:
        return False
    try:
        return bool(digest_of(text) == _nodes_of(name).DIGEST)
    except UnicodeEncodeError:  # lone surrogates
        return False


def read_document(source: Source) -> Node:
    if source.shipped and source.for_a_run:
        module = _nodes_of(source.name)
        if digest_of(source.text) == module.DIGEST:  # or somebody is about to change the policy
            return _node(source.name, json.loads(module.NODES))
    from sigwrap.policy.language.yaml_text import read_text

    return read_text(source)


def nodes_of_shipped(name: str) -> Node:
    return _node(name, json.loads(_nodes_of(name).NODES))


def _nodes_of(file: str) -> Any:
    name = f"sigwrap.policy.shipped.{module_of(file)}"
    return __import__(name, fromlist=["NODES"])  # importlib is imported for nothing else


def module_of(file: str) -> str:
    """In sigwrap/policy/shipped; policy/tools/shipped.py writes it."""
    return file.removesuffix(".yaml").replace("-", "_")


def digest_of(text: str) -> str:
    return blake2b(text.encode(), digest_size=32).hexdigest()


def _node(file: str, form: Any) -> Node:
    """A list: a scalar's line, column, value, and its text where that is another; a collection has
    its bracket before, and its items or keys and values from its fourth place on."""
    kind = form[0]
    if kind == "[":
        items = tuple([_node(file, each) for each in form[3:]])
        return SequenceNode(Place(file, form[1], form[2]), items)
    if kind == "{":
        nodes = [_node(file, each) for each in form[3:]]
        entries: Any = tuple(zip(nodes[::2], nodes[1::2], strict=True))
        return MappingNode(Place(file, form[1], form[2]), entries)
    return ScalarNode(Place(file, kind, form[1]), form[2], form[-1])
