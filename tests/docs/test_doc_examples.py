"""The examples of docs/tutorial.md and docs/commands.md print what the pages show."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.tools.doc_examples import PAGES, Shown, examples, tried

_VARIES = [
    (r"\b\d{8}-\d{6}-[0-9a-f]{6,16}\b|\b(sigwrap report|policy learn|session) [0-9a-f]{6}\b", "ID"),
    (r"^[0-9a-f]{4,8}(?=  )|\brequest [0-9a-f]{4,8}\b", "ID"),
    (r"\b[0-9a-f]{16,}\b", "HASH"),
    (r"(, )?(\bnow\b|\b\d+ (s|min) ago)", ""),
    # Not on every machine.
    (r", file rules enforced by the kernel| Nothing could be changed outside .*", ""),
    (r"\d+([.:]\d+)*", "N"),
    (r"^Killed\n", ""),  # dash says so only if the process ends after `wait` has begun
    (r" +", " "),
]


def masked(example: Shown) -> tuple[str, list[str]]:
    """Return the line, and the lines of its output. Concurrent events have no order."""
    output = example.output
    for pattern, word in _VARIES:
        output = re.sub(pattern, word, output, flags=re.MULTILINE)
    return example.line, sorted(output.splitlines())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.name))
def test_examples_print_what_the_page_shows(page: Path) -> None:
    text = page.read_text("utf-8")
    shown = [masked(example) for example in examples(text)]
    assert len(shown) >= 8
    for was, example in zip(shown, examples(tried(text)), strict=True):
        assert masked(example) == was, example.output
