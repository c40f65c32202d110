from __future__ import annotations

import os
import pty
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from sigwrap.cli import showing
from sigwrap.cli.showing import Progress


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Return the other side of the terminal that is standard error."""
    monkeypatch.setenv("TERM", "xterm")
    ours, theirs = pty.openpty()
    kept = os.dup(2)
    os.dup2(theirs, 2)
    os.close(theirs)
    try:
        yield ours
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(ours)


def test_it_is_shown_in_one_line_and_erased(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(showing, "_STARTS_AFTER_S", 0)
    with terminal(monkeypatch) as other_side:
        shown = Progress()
        shown.say("reading \x1b[2J: 10 events")
        shown.done()
        expected = b"\r\x1b[Ksigwrap: reading \\e[2J: 10 events\r\x1b[K"
        said = b""
        while len(said) < len(expected):  # a terminal may give it in parts
            said += os.read(other_side, 1000)
    assert said == expected


def test_what_is_quick_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch) as other_side:
        shown = Progress()
        shown.say("reading")
        shown.done()
        os.set_blocking(other_side, False)
        with pytest.raises(BlockingIOError):
            os.read(other_side, 1)


def test_a_pipe_gets_nothing(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(showing, "_STARTS_AFTER_S", 0)
    shown = Progress()
    shown.say("reading")
    shown.done()
    assert capfd.readouterr().err == ""
