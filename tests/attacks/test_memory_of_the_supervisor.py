"""What a request brought along is let go with it: else the supervisor would be the first to be
killed where memory runs short."""

from __future__ import annotations

from pathlib import Path

from tests.support.harness import PYTHON, Sigwrap

EXECS, WORDS = 40, 20_000
AT_MOST_KB = EXECS * WORDS * 16 // 1024  # an object of each word alone takes four times as much


def test_the_arguments_of_execs_are_let_go(as_user: Sigwrap, programs: Path) -> None:
    line = (*PYTHON, str(programs / "execs_with_many_words.py"), str(EXECS), str(WORDS))
    done = as_user.run("-p", "agent-observe", "--", *line)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < AT_MOST_KB
