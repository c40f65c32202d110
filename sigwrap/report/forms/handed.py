"""Work that was handed to servers outside of the session, a line each."""

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
        yield f"and {summary.handed_more} times to others outside"


def handed_line(handed: Handed) -> str:
    times = f", {handed.often} times" if handed.often > 1 else ""
    by = f", by {printable(handed.by)}" if handed.by else ""
    return f"handed work to {_server(handed)}, outside ({printable(handed.socket)}{by}{times})"


def _server(handed: Handed) -> str:
    if not handed.pid:
        return "a process of another container"
    if not handed.command:
        return f"PID {handed.pid}, which has ended"
    program, *rest = words(handed.command)
    line = shell_words([program.rpartition("/")[2] or program, *rest])
    return f"PID {handed.pid} {shortened(line, _COMMAND_CHARACTERS)}"
