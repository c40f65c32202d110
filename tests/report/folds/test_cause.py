from __future__ import annotations

from typing import Any

import pytest

from sigwrap.report.folds.cause import name_of_signal, shortened


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("x" * 100, "x" * 100),
        ("x" * 101, "x" * 100 + "…"),
        ("a\x1b[1m", "a\\e[1m"),
        ("", "?"),
        (None, "?"),
    ],
)
def test_a_text_is_short_and_fit_for_a_terminal(text: object, shown: str) -> None:
    assert shortened(text) == shown


@pytest.mark.parametrize(
    ("value", "name"), [(15, "SIGTERM"), (64, "SIGRTMAX"), (99, "99"), ("x", "x"), ([1], "[1]")]
)
def test_a_number_that_is_no_signal_stays_a_number(value: Any, name: str) -> None:
    assert name_of_signal(value) == name
