"""A policy's text to nodes, each with its place: file, line and column."""

from __future__ import annotations

from sigwrap.bare.digests import blake2b
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
    size: int = 0


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
        return bool(digest_of(text) == form_of_shipped(name).DIGEST)
    except UnicodeEncodeError:  # lone surrogates
        return False


def read_document(source: Source) -> Node:
    from sigwrap.policy.language.yaml_text import read_text

    return read_text(source)


def form_of_shipped(file: str) -> Any:
    name = f"sigwrap.policy.shipped.{module_of(file)}"
    return __import__(name, fromlist=["DIGEST"])  # importlib is imported for nothing else


def module_of(file: str) -> str:
    """In sigwrap/policy/shipped; policy/tools/shipped.py writes it."""
    return file.removesuffix(".yaml").replace("-", "_")


def digest_of(text: str) -> str:
    return blake2b(text.encode(), digest_size=32).hexdigest()
