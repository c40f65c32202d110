"""docs/reliability.md has the faults that tests are marked with."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.faults import GROUPS, PAGE, ROOT, Fault, faults, page_with_faults


def test_each_row_is_a_test_and_each_test_a_row() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == page_with_faults(page), "python -m tests.docs.faults --write"


def test_each_group_has_faults_and_none_is_there_twice() -> None:
    found = faults()
    assert {each.group for each in found} == set(GROUPS)
    assert len({(each.group, each.what) for each in found}) == len(found)


@pytest.mark.parametrize("fault", faults(), ids=lambda fault: fault.what)
def test_a_quoted_message_or_event_exists_in_the_sources(fault: Fault) -> None:
    """In sigwrap's sources or in the test."""
    sources = [*(ROOT / "sigwrap").rglob("*.py"), ROOT / fault.path]
    text = "".join(_joined(path) for path in sources)
    for quoted in re.findall(r"`([^`]+)`", f"{fault.sees} {fault.keeps}"):
        for fragment in filter(None, quoted.split("…")):
            assert fragment in text, fragment


def _joined(path: Path) -> str:
    """Return the source with adjacent strings joined."""
    return re.sub(r"\"\s*[bfr]*\"", "", path.read_text(encoding="utf-8"))
