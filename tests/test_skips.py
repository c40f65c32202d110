"""The list of tests that may be skipped says so of tests that are there, and says why."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.skips import ALLOWED, AllowedSkips

ROOT = Path(__file__).parents[1]


def test_every_pattern_is_of_a_test_that_is_there() -> None:
    patterns = AllowedSkips.read(ALLOWED.read_text()).patterns
    assert patterns
    for pattern in patterns:
        file, name = re.match(r"([^:]+)::(\w+)", pattern).groups()  # type: ignore[union-attr]
        assert f"def {name}(" in (ROOT / file).read_text(), pattern


def test_only_a_star_is_special() -> None:
    allowed = AllowedSkips.read("# why not\n\na/test_x.py::test_y[*]  some reason\n")
    assert allowed.has("a/test_x.py::test_y[us-1]")
    assert not allowed.has("a/test_x.py::test_y")
    assert not allowed.has("a/test_x.py::test_yu")


@pytest.mark.parametrize("line", ["a::b", "a::b   ", "  only a reason"])
def test_a_pattern_has_a_reason(line: str) -> None:
    with pytest.raises(pytest.UsageError, match="no pattern with a reason"):
        AllowedSkips.read(line)
