"""docs/ says what the schema says, no more and no less."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from sigwrap.policy.tools.reference import json_schema, with_reference
from sigwrap.start.policy_files import SHIPPED, read_source
from tests.policy.conftest import Parse

DOCS = Path(__file__).parents[2] / "docs"
AGAIN = "run: python -m sigwrap.policy.tools.reference docs"


def test_the_reference_is_up_to_date() -> None:
    page = (DOCS / "policy.md").read_text()
    assert page == with_reference(page), AGAIN


def test_every_shipped_policy_is_introduced() -> None:
    page = (DOCS / "policy.md").read_text()
    assert all(f"| `{name}` |" in page for name in SHIPPED)


def test_the_json_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(json_schema()))


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_policies_pass_it(name: str) -> None:
    jsonschema.validate(yaml.safe_load(read_source(name).text), json.loads(json_schema()))


@pytest.mark.parametrize(
    "policy",
    [
        {"version": 1, "name": "x", "descripton": "y"},
        {"version": 1, "name": "x", "command_rules": [{"name": "r"}]},
        {"version": 1, "name": "x", "defaults": {"command": "alow"}},
    ],
)
def test_it_refuses_what_the_parser_refuses(policy: object) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(policy, json.loads(json_schema()))


def test_the_examples_in_the_docs_load(parse: Parse) -> None:
    blocks = (DOCS / "policy.md").read_text().split("```yaml\n")[1:]
    assert blocks
    for block in blocks:
        text = block.partition("```")[0]
        base = "version: 1\nname: agent-default\n"
        parse(text, {"agent-default": base})
