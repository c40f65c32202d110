"""docs/policy.md's reference and docs/policy.schema.json, from the schema.

`python -m sigwrap.policy.tools.reference DOCS` writes both; a test holds them to it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

from sigwrap.amounts import SECONDS_PATTERN, SIZE_PATTERN
from sigwrap.policy.language.schema import (
    PATTERNS,
    POLICY,
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

BEGIN = "<!-- reference: generated from sigwrap/policy/language/schema.py -->"
SCHEMA_ID = "urn:sigwrap:policy:1"  # of the language's version; a schema is found by no host
END = "<!-- end of the reference -->"

_PATTERNS = {**PATTERNS, **dict.fromkeys((Form.GLOB, Form.PROGRAM, Form.PATH), "[\\s\\S]+")}


def json_schema() -> str:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "A sigwrap policy",
        **_group_schema(POLICY),
    }
    return json.dumps(schema, indent=2) + "\n"


def reference() -> str:
    sections = [(POLICY.title, POLICY), *_subgroups(POLICY)]
    lines = list[str]()
    for title, group in sections:
        lines += ["", f"### {title}", "", "| key | value | meaning |", "| --- | --- | --- |"]
        for key in group.keys:
            required = " (required)" if key.required else ""
            lines.append(f"| `{key.name}`{required} | {_value(key.shape)} | {_cell(key.meaning)} |")
    return "\n".join(lines)


def with_reference(page: str) -> str:
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{reference()}\n{END}{after}"


def _subgroups(group: Group) -> Iterator[tuple[str, Group]]:
    for key in group.keys:
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
            return _cell(shape.form.value)
        case Word():
            return _words(shape.words)
        case Number():
            return "1" if shape.minimum == shape.maximum else f"a number from {shape.minimum}"
        case Flag():
            return "true or false"
        case Duration():
            return "seconds, or `45s`, `10m`, `1h30m`, `2d`"
        case Size():
            return "bytes, or `64K`, `512M`, `2G`"
        case ListOf():
            return f"list: {_value(shape.item)}"
        case MapOf():
            return f"mapping of names: {_value(shape.value)}"
        case Group():
            return f"mapping: see {shape.title}"
        case OneOf():
            return "; or ".join(map(_value, shape.options))


def _words(words: tuple[str, ...] | list[str]) -> str:
    return " ".join(f"`{word}`" for word in words)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _group_schema(group: Group) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "additionalProperties": False,
        "properties": {key.name: _key_schema(key) for key in group.keys},
    }
    required = [key.name for key in group.keys if key.required]
    return {**schema, "required": required} if required else schema


def _key_schema(key: Key) -> dict[str, Any]:
    return {"description": key.meaning, **_schema(key.shape)}


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


def _write(folder: str) -> None:
    page_path = f"{folder}/policy.md"
    with open(page_path, encoding="utf-8") as file:
        page = file.read()
    with open(page_path, "w", encoding="utf-8") as file:
        file.write(with_reference(page))
    with open(f"{folder}/policy.schema.json", "w", encoding="utf-8") as file:
        file.write(json_schema())


if __name__ == "__main__":
    _write(sys.argv[1])
