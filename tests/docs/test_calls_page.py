from __future__ import annotations

from tests.docs.calls_page import PAGE, calls_reference


def test_the_documented_calls_are_those_of_the_table() -> None:
    again = "run: python -m tests.docs.calls_page --write"
    assert PAGE.read_text(encoding="utf-8") == calls_reference(), again
