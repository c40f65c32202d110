"""The example in docs/report.md is what a new recording of the same session says."""

from __future__ import annotations

import re
from pathlib import Path

from tests.tools.report_example import DOCUMENT, example, record, recorded

# Only where the machine has commands of these names as well.
_BY_MACHINE = ("Found along PATH", "The session itself")
_FOLDER = re.compile(r"/\S*/shop-demo(?=/)")  # in which the agent's project lies meanwhile


def told(report: str) -> list[str]:
    """The titles, and what became of what."""
    lines = [re.sub(r"\d+", "N", _FOLDER.sub("", line)) for line in report.splitlines()]
    attention = re.compile(r"  (denied|asked, denied|redirected)  ")
    title = re.compile(r"[A-Z][\w' ]+( \(.*\))?$")
    found = [line for line in lines if attention.match(line) or title.match(line)]
    return [line for line in found if not line.startswith(_BY_MACHINE)]


def test_the_example_is_of_this_version(tmp_path: Path) -> None:
    record(tmp_path / "store", tmp_path)
    shown = example(DOCUMENT.read_text("utf-8"))
    assert told(recorded(tmp_path / "store")) == told(shown)
    assert len(told(shown)) > 15
