"""Generate the tables of docs/policy-reference.md from the schema.

`python -m tests.docs.policy_reference --write` writes them. The text around them is written by
hand.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from sigwrap.policy.judge.signals import ALL, GROUPS, signal_name
from sigwrap.policy.language.schema import ANY, POLICY, RULE_KEYS
from sigwrap.policy.language.shapes import (
    Duration,
    Flag,
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

PAGE = Path(__file__).parents[2] / "docs" / "policy-reference.md"
_TABLE = r"\| {} \|.*\n(?:\|.*\n)+"


def page(text: str) -> str:
    """Return the page with its tables made anew."""
    groups = {POLICY.title: POLICY} | dict(_subgroups(POLICY))
    missing = dict(groups)
    parts = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    for at in range(1, len(parts), 2):
        if group := missing.pop(parts[at], None):
            rows = _rows(parts[at], group)
            parts[at + 1] = _replaced(parts[at + 1], ("Key", "Value", "Meaning"), rows)
        parts[at] = f"## {parts[at]}"
    if missing:
        raise SystemExit(f"{PAGE}: no section for {', '.join(missing)}")
    text = _replaced("".join(parts), ("Signal group", "Signals"), _signal_groups())
    return _replaced(text, ("Old key", "Now"), _old_keys(groups))


def _replaced(text: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    table = "".join([_row(head), "|---" * len(head) + "|\n", *map(_row, rows)])
    new, count = re.subn(_TABLE.format(re.escape(head[0])), lambda _: table, text)
    if count != 1:
        raise SystemExit(f"{PAGE}: {count} tables of {head[0]}, not 1, in {text[:30]!r}")
    return new


def _row(cells: Sequence[str]) -> str:
    escaped = (each.replace("|", "\\|") for each in cells)
    return f"| {' | '.join(escaped)} |\n"


def _rows(title: str, group: Group) -> Iterator[tuple[str, str, str]]:
    for key in group.keys:
        if not key.old and not (title.endswith("_rules") and key in RULE_KEYS):
            yield _key_cell(key), _value(key.shape), key.meaning


def _key_cell(key: Key) -> str:
    other = f", or `{key.unless}`" if key.unless else ""
    return f"`{key.name}`{f' (required{other})' if key.required else ''}"


def _old_keys(groups: dict[str, Group]) -> Iterator[tuple[str, str]]:
    for title, group in groups.items():
        for key in group.keys:
            if key.new:
                name = key.name if group is POLICY else f"{title}.{key.name}"
                yield f"`{name}`", f"`{key.new}`"


def _signal_groups() -> Iterator[tuple[str, str]]:
    for name, numbers in GROUPS.items():
        if len(numbers) <= len(ALL) // 2:
            words = _short_names(numbers)
        else:
            lacking = _short_names(ALL - numbers)
            words = f"all but {lacking}" if lacking else "all, with realtime signals"
        yield f"`{name}`", words


def _short_names(numbers: frozenset[int]) -> str:
    return " ".join(signal_name(each).removeprefix("SIG") for each in sorted(numbers))


def _subgroups(group: Group) -> Iterator[tuple[str, Group]]:
    for key in group.keys:
        if not key.old:
            yield from _groups_in(key.shape)


def _groups_in(shape: Shape) -> Iterator[tuple[str, Group]]:
    match shape:
        case Group() if shape is not ANY:  # its keys are those of command_rules
            yield shape.title, shape
            yield from _subgroups(shape)
        case ListOf():
            yield from _groups_in(shape.item)
        case OneOf():
            for option in shape.options:
                yield from _groups_in(option)


def _value(shape: Shape) -> str:
    match shape:
        case Text():
            return shape.form.value
        case Word():
            return shape.kind or " ".join(f"`{word}`" for word in shape.words)
        case Number():
            return "`1`" if shape.minimum == shape.maximum else "number"
        case Flag():
            return "boolean"
        case Duration():
            return "duration"
        case Size():
            return "size"
        case ListOf(item=OneOf()):
            return "list of these"
        case ListOf():
            return f"list of {_value(shape.item)}"
        case MapOf():
            return f"names and values: {_value(shape.value)}"
        case Group(title=ANY.title):
            return "mappings of the keys above"
        case Group():
            return f"[{shape.title}](#{shape.title.replace('.', '')})"
        case OneOf():
            options = [each for each in shape.options if each != shape.old]
            return ", ".join(dict.fromkeys(map(_value, options)))


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
