"""The words that answer a question on the terminal.

A yes has a code in it that only the question showed, a new one each time it is shown, and for the
whole session another than for once. For the session can have bytes typed: a terminal answers
reports, and the line discipline edits these as its modes say, which the session may set and set
back at any moment. A `y` can be made of that. The code it can't know: no program reads what is on
a terminal but the one that shows it, and where that one would tell (linux/terminal_typists.py)
nobody is asked.
"""

from __future__ import annotations

import os

from sigwrap.mediate.questions import Verdict

MOST_WRONG = 10  # lines in a row: a guess succeeds once in 6,500 times

_LETTERS = "bcdfghjkmnpqrstvwxz"  # they make no words, and none looks like another
_CODE_LENGTH = 4
_YES = frozenset({b"y", b"yes", b"a", b"always"})


class Answers:
    """What the question that is shown now may be answered with."""

    def __init__(self, *, or_always: bool) -> None:
        once, always = _code(), _code()
        while always == once:
            always = _code()
        self._verdicts = {
            f"y{once}": Verdict.ONCE,
            f"yes{once}": Verdict.ONCE,
            "n": Verdict.NO,
            "no": Verdict.NO,
        }
        self.shown = f'Allow? Type "y {once}" (once) or "n": '
        if or_always:
            self._verdicts[f"a{always}"] = self._verdicts[f"always{always}"] = Verdict.ALWAYS
            self.shown = f'Allow? Type "y {once}" (once), "a {always}" (this session) or "n": '

    def verdict(self, line: bytes) -> Verdict | None:
        """Return the verdict of a whole line, where spaces and the shown quotes are ignored."""
        words = line.removesuffix(b"\n").replace(b" ", b"").replace(b'"', b"").lower()
        return self._verdicts.get(words.decode("latin-1")) if line.endswith(b"\n") else None


def is_without_code(line: bytes) -> bool:
    return line.strip().lower() in _YES


def _code() -> str:
    rest = int.from_bytes(os.urandom(8), "big")
    letters = []
    for _ in range(_CODE_LENGTH):
        rest, position = divmod(rest, len(_LETTERS))
        letters.append(_LETTERS[position])
    return "".join(letters)
