from __future__ import annotations

import os
import shlex
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwrap.text import printable, shell_words

UNSEEN = "\u034f\u2800\u3164\ufe0f\uffa0\u0336\u0338\u0489\u20d2\u20dd\ua670"
any_text = st.text(st.characters(exclude_categories=()))


@given(any_text)
def test_nothing_reaches_a_terminal_that_it_would_act_on(text: str) -> None:
    for shown in (printable(text), shell_words([text, text])):
        assert shown.isprintable()


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b]0;title\x07", "\\e]0;title\\x07"),
        ("a\nsigwrap: all is well", "a\\nsigwrap: all is well"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\x9b31m", "\\u009b31m"),
        (os.fsdecode(b"\xff"), "\\xff"),
        ("\U000e0041", "\\U000e0041"),
        ("grüße 日本", "grüße 日本"),
        ("e\u0301", "e\u0301"),
        *((f"a{char}b", f"a\\u{ord(char):04x}b") for char in UNSEEN),
        ("a\U000e0100b", "a\\U000e0100b"),
    ],
)
def test_what_a_terminal_would_act_on_is_spelled_out(hostile: str, shown: str) -> None:
    assert printable(hostile) == shown


@given(st.lists(st.text(st.characters(categories=("L", "N", "P", "S", "Zs")))))
def test_words_without_controls_can_be_pasted_into_a_shell(argv: list[str]) -> None:
    printable_words = [word for word in argv if printable(word) == word]
    assert shlex.split(shell_words(printable_words)) == printable_words


def test_words_with_controls_can_be_pasted_into_bash() -> None:
    argv = ["echo", "a\u2800", "a\n\t'b'\\", "\x1b[1m", "ä\u202e", "\x01\x7f"]
    script = f"printf '%s\\0' {shell_words(argv)}"
    found = subprocess.run(
        ["bash", "-c", script], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}
    )
    assert found.stdout.decode().split("\0")[:-1] == argv
