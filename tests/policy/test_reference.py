"""The generated documents say what the schema says, and the policy pages' examples load."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from sigwrap.policy.judge.network import SOCKETS, WORDS
from sigwrap.policy.language.fill import BUILT_IN
from sigwrap.policy.language.schema import TARGET_WORDS
from sigwrap.policy.tools.reference import json_schema, page
from sigwrap.policy.tools.reference_notes import (
    BUILT_IN_RULES,
    DESTINATIONS,
    NOTES,
    TARGETS,
    VARIABLES,
)
from sigwrap.start.policy_files import SHIPPED, read_source
from tests.policy.conftest import Parse

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
AGAIN = "run: python -m sigwrap.policy.tools.reference docs"


def test_the_reference_is_up_to_date() -> None:
    assert (DOCS / "policy-reference.md").read_text() == page(), AGAIN


def test_the_json_schema_is_up_to_date() -> None:
    assert (DOCS / "policy.schema.json").read_text() == json_schema(), AGAIN


def test_the_reference_has_every_word_that_a_policy_may_use() -> None:
    assert set(TARGETS) == set(TARGET_WORDS)
    assert set(VARIABLES) == set(BUILT_IN)
    words = set(re.findall(r"`([\w-]+)`", DESTINATIONS["unix:docker"]))
    assert words == set(SOCKETS) - {"*"}
    assert set(WORDS) <= set(DESTINATIONS)


def test_the_reference_has_every_built_in_rule() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "sigwrap").rglob("*.py"))
    assert set(re.findall(r"[\"`]builtin:(\w+)\b", sources)) == set(BUILT_IN_RULES)


def test_every_note_stands_below_a_section() -> None:
    titles = re.findall(r"^## (\S+)$", page(), re.MULTILINE)
    assert set(NOTES) <= set(titles)


def test_the_reference_stays_short_enough_to_read() -> None:
    assert len(page().split()) <= 3600


def test_every_shipped_policy_is_introduced() -> None:
    guide = (DOCS / "policy.md").read_text()
    assert all(f"| `{name}` |" in guide for name in SHIPPED)


def test_the_json_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(json_schema()))


@pytest.mark.parametrize("name", SHIPPED)
def test_the_shipped_policies_pass_it(name: str) -> None:
    document = yaml.safe_load(read_source(name).text.replace("\non:", '\n"on":'))  # YAML 1.1
    jsonschema.validate(document, json.loads(json_schema()))


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


@pytest.mark.parametrize("document", ["policy.md", "cookbook.md"])
def test_the_examples_in_the_docs_load(parse: Parse, document: str) -> None:
    blocks = (DOCS / document).read_text().split("```yaml\n")[1:]
    assert blocks
    bases = {name: read_source(name).text.replace("${TMPDIR}", "/tmp") for name in SHIPPED}
    bases["team.yaml"] = "version: 1\nname: team\n"
    for block in blocks:
        parse(block.partition("```")[0], bases)
