"""Generate docs/policy-reference.md and docs/policy.schema.json from the schema.

`python -m sigwrap.policy.tools.reference DOCS` writes both files. A test fails where they differ.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sigwrap.amounts import SECONDS_PATTERN, SIZE_PATTERN
from sigwrap.policy.judge.signals import ALL, GROUPS, signal_name
from sigwrap.policy.language.schema import ANY, POLICY, RULE_KEYS
from sigwrap.policy.language.shapes import (
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
from sigwrap.policy.tools.reference_notes import (
    BUILT_IN_RULES,
    DESTINATIONS,
    INTRODUCTION,
    NOTES,
    OLD_KEYS,
    TARGETS,
    VARIABLES,
    VARIABLES_NOTE,
)

SCHEMA_ID = "urn:sigwrap:policy:1"  # ends in the version of the language; no host serves it

_PATTERNS = {**PATTERNS, **dict.fromkeys((Form.GLOB, Form.PROGRAM, Form.PATH), "[\\s\\S]+")}


def json_schema() -> str:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "A sigwrap policy",
        **_group_schema(POLICY),
    }
    return json.dumps(schema, indent=2) + "\n"


def page() -> str:
    """Return docs/policy-reference.md."""
    parts = [INTRODUCTION]
    for title, group in [(POLICY.title, POLICY), *_subgroups(POLICY)]:
        if group is ANY:  # its keys are those of command_rules
            continue
        parts.append(f"## {title}")
        keys = [key for key in group.keys if not key.old]
        if title.endswith("_rules"):
            keys = [key for key in keys if key not in RULE_KEYS]
        rows = [(_key_cell(key), _value(key.shape), key.meaning) for key in keys]
        parts.append(table(("Key", "Value", "Meaning"), rows))
        if title == "target":
            parts.append(table(("Target word", "Processes"), _quoted(TARGETS)))
            parts.append(table(("Signal group", "Signals"), _signal_groups()))
        if title == "network_rules":
            parts.append(table(("Destination", "Meaning"), _quoted(DESTINATIONS)))
        if title in NOTES:
            parts.append(NOTES[title])
    built_in_rules = {f"builtin:{name}": meaning for name, meaning in BUILT_IN_RULES.items()}
    variables = {f"${{{name}}}": meaning for name, meaning in VARIABLES.items()}
    parts += ["## Variables", table(("Variable", "Value"), _quoted(variables)), VARIABLES_NOTE]
    parts += ["## Built-in rules", table(("Rule", "Meaning"), _quoted(built_in_rules))]
    parts += ["## Old keys", OLD_KEYS, table(("Old key", "Now"), _old_keys())]
    return "\n\n".join(parts) + "\n"


def _old_keys() -> list[tuple[str, str]]:
    groups = [(POLICY.title, POLICY), *_subgroups(POLICY)]
    found = {
        key.name if group is POLICY else f"{title}.{key.name}": key.new
        for title, group in groups
        for key in group.keys
        if key.new
    }
    return [(f"`{name}`", f"`{new}`") for name, new in found.items()]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [_row(head), "|---" * len(head) + "|", *map(_row, rows)]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_escaped, cells))} |"


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")


def _quoted(rows: dict[str, str]) -> list[tuple[str, str]]:
    return [(f"`{name}`", meaning) for name, meaning in rows.items()]


def _signal_groups() -> list[tuple[str, str]]:
    return _quoted({name: _short_names(numbers) for name, numbers in GROUPS.items()})


def _short_names(numbers: frozenset[int]) -> str:
    """Return the names without SIG; of a group with most signals, those that it lacks."""
    if len(numbers) <= len(ALL) // 2:
        return " ".join(signal_name(each).removeprefix("SIG") for each in sorted(numbers))
    lacking = " ".join(signal_name(each).removeprefix("SIG") for each in sorted(ALL - numbers))
    return f"all but {lacking}" if lacking else "all, with realtime signals"


def _key_cell(key: Key) -> str:
    other = f", or `{key.unless}`" if key.unless else ""
    return f"`{key.name}`{f' (required{other})' if key.required else ''}"


def _subgroups(group: Group) -> Iterator[tuple[str, Group]]:
    for key in group.keys:
        if not key.old:
            yield from _groups_in(key.shape)


def _groups_in(shape: Shape) -> Iterator[tuple[str, Group]]:
    match shape:
        case Group():
            yield shape.title, shape
            yield from _subgroups(shape)
        case ListOf():
            yield from _groups_in(shape.item)
        case OneOf():
            # The same mapping may stand alone and in a list.
            yield from {
                title: (title, group)
                for option in shape.options
                for title, group in _groups_in(option)
            }.values()
        case _:
            return


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


def _group_schema(group: Group) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        "properties": {key.name: _key_schema(key) for key in group.keys},
    }
    required = [key.name for key in group.keys if key.required and not key.unless]
    for key in group.keys:
        if key.required and key.unless:
            schema["anyOf"] = [{"required": [key.name]}, {"required": [key.unless]}]
    return {**schema, "required": required} if required else schema


def _key_schema(key: Key) -> dict[str, Any]:
    schema = {"description": key.meaning, **_schema(key.shape)}
    return {**schema, "deprecated": True} if key.old else schema


def _schema(shape: Shape) -> dict[str, Any]:
    match shape:
        case Text(form=Form.SIGNAL | Form.SIGNALS):
            return {"type": ["string", "integer"]}
        case Text():
            pattern = _PATTERNS.get(shape.form)
            return {"type": "string", **({"pattern": f"^{pattern}$"} if pattern else {})}
        case Word():
            return {"enum": list(shape.words)}
        case Number():
            return {"type": "integer", "minimum": shape.minimum, "maximum": shape.maximum}
        case Flag():
            return {"type": "boolean"}
        case Duration():
            return _amount_schema(SECONDS_PATTERN)
        case Size():
            return _amount_schema(SIZE_PATTERN)
        case ListOf():
            schema = {"type": "array", "items": _schema(shape.item)}
            return {**schema, "minItems": shape.minimum} if shape.minimum else schema
        case MapOf():
            names = {"pattern": f"^{PATTERNS[shape.key.form]}$"}
            return {
                "type": "object",
                "propertyNames": names,
                "additionalProperties": _schema(shape.value),
            }
        case Group():
            return _group_schema(shape)
        case OneOf():
            return {"anyOf": [_schema(option) for option in shape.options]}


def _amount_schema(pattern: str) -> dict[str, Any]:
    return {"type": ["string", "integer"], "minimum": 0, "pattern": f"^{pattern}$"}


def _write(directory: str) -> None:
    with open(f"{directory}/policy-reference.md", "w", encoding="utf-8") as file:
        file.write(page())
    with open(f"{directory}/policy.schema.json", "w", encoding="utf-8") as file:
        file.write(json_schema())


if __name__ == "__main__":
    _write(sys.argv[1])
