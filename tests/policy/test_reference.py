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
from sigwrap.policy.language.schema import OPERATIONS, TARGET_WORDS
from sigwrap.start.policy_files import SHIPPED, read_source
from tests.docs.policy_reference import PAGE, page
from tests.docs.policy_schema import FILE, json_schema
from tests.policy.conftest import Parse

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
REFERENCE = PAGE.read_text()


def first_column(head: str) -> set[str]:
    """Return the words of a table in the reference, without their backquotes."""
    _, _, rows = REFERENCE.partition(f"| {head} | ")
    return set(re.findall(r"^\| `(.+?)` \|", rows.partition("\n\n")[0], re.MULTILINE))


def test_the_reference_is_up_to_date() -> None:
    assert page(REFERENCE) == REFERENCE, "run: python -m tests.docs.policy_reference --write"


def test_the_json_schema_is_up_to_date() -> None:
    assert FILE.read_text() == json_schema(), "run: python -m tests.docs.policy_schema --write"


def test_the_reference_has_every_word_that_a_policy_may_use() -> None:
    assert first_column("Target word") == set(TARGET_WORDS)
    assert first_column("Variable") == {f"${{{name}}}" for name in BUILT_IN}
    assert first_column("Operation") == set(OPERATIONS)
    (services,) = re.findall(r"^\| `unix:docker` \|.*", REFERENCE, re.MULTILINE)
    assert set(re.findall(r"`([\w-]+)`", services)) == set(SOCKETS) - {"*"}
    assert set(WORDS) <= first_column("Destination")


def test_the_reference_has_every_built_in_rule() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "sigwrap").rglob("*.py"))
    rules = {f"builtin:{name}" for name in re.findall(r"[\"`]builtin:(\w+)\b", sources)}
    assert first_column("Rule") == rules


def test_the_reference_stays_short_enough_to_read() -> None:
    assert len(REFERENCE.split()) <= 3600


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
