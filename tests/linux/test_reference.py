from __future__ import annotations

from pathlib import Path

from sigwrap.linux.reference import calls_reference

DOCUMENT = Path(__file__).parents[2] / "docs" / "calls.md"


def test_the_documented_calls_are_those_of_the_table() -> None:
    again = "run: python -m sigwrap.linux.reference > docs/calls.md"
    assert DOCUMENT.read_text(encoding="utf-8") == calls_reference(), again
