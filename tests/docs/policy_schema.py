"""Make docs/policy.schema.json, the JSON Schema of policies, from the schema of the language.

`python -m tests.docs.policy_schema --write` writes it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from sigwrap.policy.language.schema import POLICY
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
from sigwrap.text import SECONDS_PATTERN, SIZE_PATTERN

FILE = Path(__file__).parents[2] / "docs" / "policy.schema.json"
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


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    FILE.write_text(json_schema(), encoding="utf-8")
