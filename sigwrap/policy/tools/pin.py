"""Rules that deny a tool after its file has changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sigwrap.escape import printable
from sigwrap.policy.tools.draft import unused_name
from sigwrap.policy.tools.literal import glob_of, yaml_word
from sigwrap.tuples import NamedTuple


class Pin(NamedTuple):
    name: str  # by which it is called
    path: str  # without links
    sha256: str


def pin_rules(pins: Iterable[Pin]) -> str:
    """Return a rule for each name; several files with one name are all allowed."""
    by_name: dict[str, list[Pin]] = {}
    for pin in dict.fromkeys(pins):
        by_name.setdefault(pin.name, []).append(pin)
    lines = ["command_rules:"]
    taken: set[str] = set()
    for name, versions in by_name.items():
        lines += _rule(unused_name(("pin", name), taken), name, versions)
    return "\n".join(lines)


def _rule(rule_name: str, name: str, versions: Sequence[Pin]) -> Iterator[str]:
    message = (
        f"{name} has changed since it was pinned: find out why; "
        f"sigwrap policy pin {name} prints the new digest"
    )
    yield f"  - name: {rule_name}"
    yield f"    commands: [{yaml_word(glob_of(name))}]"
    yield "    not_sha256:"
    paths: dict[str, list[str]] = {}
    for pin in versions:
        paths.setdefault(pin.sha256, []).append(pin.path)
    for digest, having in paths.items():
        yield f'      - "{digest}"  # {printable(", ".join(having))}'
    yield "    decision: deny"
    yield f"    message: {yaml_word(message.replace('${', '$ {'))}"
