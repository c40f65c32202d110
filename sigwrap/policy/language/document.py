"""A policy's text, its nodes with their places, and the parts that are made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sigwrap.bare import Any, NamedTuple, blake2b, json
from sigwrap.errors import PolicyError
from sigwrap.events import Payload
from sigwrap.policy import SHIPPED
from sigwrap.policy.judge.request import Action
from sigwrap.policy.judge.rules import CommandRule, FileRule, NetworkRule, SignalRule
from sigwrap.policy.problems import Place

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
    digest: str = ""  # of a shipped text that is not here: a log has only that


class ShippedForm(NamedTuple):
    """A shipped policy as policy/tools/shipped.py has checked it."""

    digest: str  # of its text
    base: tuple[int, int, str] | None  # line, column, name
    parts: bytes


def is_shipped(name: str, text: str) -> bool:
    """Return whether this very text is that of a shipped policy."""
    try:
        return has_digest(name, digest_of(text))
    except UnicodeEncodeError:  # lone surrogates
        return False


def has_digest(name: str, digest: str) -> bool:
    """Return whether a shipped policy has this name and digest."""
    return name.removesuffix(".yaml") in SHIPPED and form_of_shipped(name).digest == digest


def form_of_shipped(file: str) -> ShippedForm:
    try:
        # importlib is imported for nothing else.
        module = __import__("sigwrap.policy.shipped", fromlist=["FORMS"])
    except ImportError as missing:
        how = "to make it: make setup (or pip install -e .)"
        raise PolicyError("sigwrap/policy/shipped.py is missing", how) from missing
    return ShippedForm(*module.FORMS[file.removesuffix(".yaml")])


def digest_of(text: str) -> str:
    digest: str = blake2b(text.encode(), digest_size=32).hexdigest()
    return digest


# The rules by which `network: {default: deny}` still allows DNS and loopback.
IMPLIED = ("implied-name-service", "implied-loopback-server", "implied-loopback")


class NetworkDefault(NamedTuple):
    """The decision on connections that no rule matches."""

    place: Place
    action: Action
    implied: tuple[NetworkRule, ...] = ()


class Parts(NamedTuple):
    values: dict[str, Any]  # fields of Policy
    sections: dict[str, dict[str, Any]]  # fields of Policy, each with the fields that are given
    network: NetworkDefault | None
    command_rules: tuple[CommandRule, ...] = ()
    signal_rules: tuple[SignalRule, ...] = ()
    file_rules: tuple[FileRule, ...] = ()
    network_rules: tuple[NetworkRule, ...] = ()


def policy_texts(sources: Sequence[Source], variables: Mapping[str, str]) -> Payload:
    """Return them for the event; `sources` are the policy and then its bases.

    A shipped text has 40 KB and is in sigwrap itself, so the log has its digest alone.
    """
    texts: Payload = {
        "policy_sources": [
            {"name": each.name, "digest": form_of_shipped(each.name).digest}
            if each.shipped
            else {"name": each.name, "text": each.text}
            for each in sources
        ],
        "policy_variables": dict(variables),
    }
    return {**texts, "policy_digest": digest_of_texts(texts)}


def digest_of_texts(payload: Payload) -> str:
    texts = {name: payload.get(name) for name in ("policy_sources", "policy_variables")}
    return digest_of(json.dumps_sorted(texts))
