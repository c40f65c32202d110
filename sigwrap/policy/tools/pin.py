"""Rules that deny a tool whose file is another than now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from sigwrap.policy.tools.literal import glob_of, yaml_word
from sigwrap.tuples import NamedTuple


class Pin(NamedTuple):
    name: str  # as it is called
    path: str  # links resolved: what would be loaded
    sha256: str


def pin_rules(pins: Iterable[Pin]) -> str:
    """One rule for each name: of several files with one name, each is let through."""
    by_name: dict[str, list[Pin]] = {}
    for pin in dict.fromkeys(pins):
        by_name.setdefault(pin.name, []).append(pin)
    lines = ["command_rules:"]
    taken: set[str] = set()
    for name, versions in by_name.items():
        lines += _rule(_rule_name(name, taken), name, versions)
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
        yield f'      - "{digest}"  # {", ".join(having)}'
    yield "    decision: deny"
    yield f"    message: {yaml_word(message.replace('${', '$ {'))}"


def _rule_name(name: str, taken: set[str]) -> str:
    """A rule's name has letters, digits, `.`, `_` and `-`."""
    plain = "".join(each if _may_stand_in_a_name(each) else "-" for each in name)
    found, count = f"pin-{plain}", 1
    while found in taken:
        count += 1
        found = f"pin-{plain}-{count}"
    taken.add(found)
    return found


def _may_stand_in_a_name(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character in "._-")
