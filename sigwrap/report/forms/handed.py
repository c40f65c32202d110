"""Work that was handed to servers outside the session, a line each."""

from __future__ import annotations

from collections.abc import Iterator

from sigwrap.escape import printable, shell_words, shortened
from sigwrap.report.folds.handed import Handed
from sigwrap.report.folds.summary import Summary
from sigwrap.report.folds.tree import words

_COMMAND_CHARACTERS = 80


def handed_lines(summary: Summary) -> Iterator[str]:
    """Fit for a terminal."""
    yield from map(handed_line, summary.handed)
    if summary.handed_more:
        yield f"and {summary.handed_more} times to other processes outside the session"


def handed_line(handed: Handed) -> str:
    times = f", {handed.often} times" if handed.often > 1 else ""
    by = f", by {printable(handed.by)}" if handed.by else ""
    through = f"{printable(handed.socket)}{by}{times}"
    return f"handed work outside the session, to {_server(handed)} ({through})"


def _server(handed: Handed) -> str:
    if not handed.pid:
        return "a process in another container"
    if not handed.command:
        return f"PID {handed.pid}, which has ended"
    program, *rest = words(handed.command)
    line = shell_words([program.rpartition("/")[2] or program, *rest])
    return f"PID {handed.pid} {shortened(line, _COMMAND_CHARACTERS)}"
