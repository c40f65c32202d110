from __future__ import annotations

from tests.docs.watch_screen import DOCUMENT, with_screen


def test_the_screen_in_the_document_is_drawn_so() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert "kill switch off" in text
    assert with_screen(text) == text, "python -m tests.docs.watch_screen --write"
