"""A policy that denies tools after their files have changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sigwrap.bare import NamedTuple
from sigwrap.policy.tools.draft import unused_name
from sigwrap.policy.tools.literal import glob_of, yaml_word
from sigwrap.text import printable


class Pin(NamedTuple):
    name: str  # by which it is called
    path: str  # without links
    sha256: str


def pinning_policy(extends: str, pins: Iterable[Pin]) -> str:
    """Return a policy with a rule for each name; several files with one name are all allowed."""
    by_name: dict[str, dict[str, list[str]]] = {}
    for pin in dict.fromkeys(pins):
        by_name.setdefault(pin.name, {}).setdefault(pin.sha256, []).append(pin.path)
    lines = ["version: 1", "name: pinned", f"extends: {extends}", "", "command_rules:"]
    taken: set[str] = set()
    for name, paths in by_name.items():
        lines += _rule(unused_name(("pin", name), taken), name, paths)
    return "\n".join(lines)


def _rule(rule_name: str, name: str, paths: dict[str, list[str]]) -> Iterator[str]:
    message = (
        f"{name} has changed since it was pinned: find out why; "
        f"sigwrap policy pin {name} prints the new digest"
    )
    yield f"  - name: {rule_name}"
    yield f"    commands: [{yaml_word(glob_of(name))}]"
    yield "    not_sha256:"
    for digest, having in paths.items():
        yield f'      - "{digest}"  # {printable(", ".join(having))}'
    yield "    decision: deny"
    yield f"    message: {yaml_word(message.replace('${', '$ {'))}"
