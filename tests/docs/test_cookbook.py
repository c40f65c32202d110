"""Each recipe of docs/cookbook.md checks without a warning, and decides as its comments say."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tests.support.harness import Sigwrap

COOKBOOK = (Path(__file__).parents[2] / "docs" / "cookbook.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"^## (\d+)\. (.*?)(?=^## |\Z)", COOKBOOK, re.MULTILINE | re.DOTALL))
EXPLAINED = re.compile(r"^sigwrap (policy explain .*?)  # (\w+)$", re.MULTILINE)


def policies(recipe: str) -> list[tuple[str, str]]:
    """Return the file name and the text of each policy."""
    blocks = re.findall(r"^```yaml\n(.*?)^```", recipe, re.MULTILINE | re.DOTALL)
    named = [(re.match(r"# (\S+)\n", block), block) for block in blocks]
    return [(name[1] if name else "my-policy.yaml", block) for name, block in named]


def test_the_cookbook_has_fifteen_recipes() -> None:
    assert list(RECIPES) == [str(number) for number in range(1, 16)]


@pytest.mark.parametrize("number", RECIPES)
def test_a_recipe(sigwrap: Sigwrap, number: str) -> None:
    for name in (".env", "deploy.sh"):
        (sigwrap.folder / name).write_text("#!/bin/sh\n")
        (sigwrap.folder / name).chmod(0o755)
    for name, text in policies(RECIPES[number]):
        (sigwrap.folder / name).write_text(text)
        assert "\ntests:\n" in text
        done = sigwrap.run("policy", "check", name)
        assert re.fullmatch(rf"{name}: ok; \d+ tests? pass(es)?\n".encode(), done.stdout), done
    assert name == "my-policy.yaml"
    for line, decision in EXPLAINED.findall(RECIPES[number]):
        words = shlex.split(line)
        done = sigwrap.run("policy", "explain", "--json", *words[2:])
        assert json.loads(done.stdout)["decision"]["action"] == decision, line


def test_most_recipes_show_a_decision() -> None:
    assert sum(bool(EXPLAINED.search(recipe)) for recipe in RECIPES.values()) >= 12
