"""The page of what goes wrong is the tests' own."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.faults import GROUPS, PAGE, ROOT, Fault, faults, page_with_tables


def test_each_row_is_a_test_and_each_test_a_row() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == page_with_tables(page), "python -m tests.docs.faults --write"


def test_each_group_has_faults_and_none_is_there_twice() -> None:
    found = faults()
    assert {each.group for each in found} == set(GROUPS)
    assert len({(each.group, each.what) for each in found}) == len(found)


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.what)
def test_what_the_user_is_said_to_read_is_written_somewhere(fault: Fault) -> None:
    """By sigwrap, or by the test that demands it."""
    sources = [*(ROOT / "sigwrap").rglob("*.py"), ROOT / fault.path]
    text = "".join(_joined(path) for path in sources)
    for quoted in re.findall(r"`([^`]+)`", f"{fault.sees} {fault.keeps}"):
        for fragment in filter(None, quoted.split("…")):
            assert fragment in text, fragment


def _joined(path: Path) -> str:
    """With each string in one piece."""
    return re.sub(r"\"\s*[bfr]*\"", "", path.read_text(encoding="utf-8"))
