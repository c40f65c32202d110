"""A package's docstring is the newcomer's map: a line for each of its modules, and no other."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PACKAGES = sorted(path.parent for path in (ROOT / "sigwrap").rglob("__init__.py"))


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_docstring_has_a_line_for_every_module(package: Path) -> None:
    modules = {path.stem for path in package.glob("*.py")} - {"__init__", "__main__"}
    modules |= {path.parent.name for path in package.glob("*/__init__.py")}
    docstring = ast.get_docstring(ast.parse((package / "__init__.py").read_text("utf-8"))) or ""
    named = re.findall(r"^(\w+) {2,}\S", docstring, re.MULTILINE)
    assert sorted(named) == sorted(modules)
