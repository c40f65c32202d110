"""How a problem reads."""

from __future__ import annotations

import pytest

from sigwrap.policy.problems import InvalidPolicy, Place, Problem
from sigwrap.text import nearest_word


def problem(message: str, file: str = "a.yaml", line: int = 1, column: int = 1) -> Problem:
    return Problem(place=Place(file=file, line=line, column=column), message=message)


def test_problems_are_listed_in_the_order_of_the_files() -> None:
    error = InvalidPolicy(
        [
            problem("last", "b.yaml"),
            problem("third", line=2, column=2),
            problem("first"),
            problem("second", line=2),
        ]
    )
    assert error.lines == [
        "4 problems in the policy:",
        "  a.yaml:1:1: first",
        "  a.yaml:2:1: second",
        "  a.yaml:2:2: third",
        "  b.yaml:1:1: last",
    ]


@pytest.mark.parametrize(
    ("offending", "shown"),
    [
        ("x" * 80, "x" * 80),
        ("x" * 81, "x" * 77 + "…"),
        ("é\x1b[2J\n", "é\\x1b[2J\\n"),
    ],
)
def test_offending_text_is_fit_for_a_terminal(offending: str, shown: str) -> None:
    assert str(problem("x")._replace(offending=offending)) == f'a.yaml:1:1: x: "{shown}"'


@pytest.mark.parametrize(
    ("word", "nearest"),
    [("alow", "allow"), ("DENY", "deny"), ("sigtrem", "SIGTERM"), ("zzz", ""), ("", "")],
)
def test_the_nearest_word(word: str, nearest: str) -> None:
    assert nearest_word(word, ["allow", "deny", "SIGTERM"]) == nearest
