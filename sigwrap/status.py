"""The one table of exit statuses; README and docs quote it."""

from __future__ import annotations

BLOCKED = 2  # of `sigwrap hook`: an agent's program takes no other status for a denial
LIMIT_REACHED = 124
REFUSED = 125
NOT_EXECUTABLE = 126
NOT_FOUND = 127
INTERRUPTED = 130


def from_signal(signal_number: int) -> int:
    return 128 + signal_number


TABLE: tuple[tuple[str, str], ...] = (
    ("the command's own", "it ended by itself"),
    ("128+N", "it died of signal N"),
    (
        str(INTERRUPTED),
        "interrupted: a SIGINT, SIGTERM, SIGHUP or SIGQUIT to sigwrap, or by sigwrap signal, "
        "ended it",
    ),
    (str(LIMIT_REACHED), "a limit ended it (wall time, programs started, size of the log, …)"),
    (
        str(REFUSED),
        "sigwrap itself failed, or refused to run (kill switch on, no interception, "
        "bad policy, bad usage, nested)",
    ),
    (str(NOT_EXECUTABLE), "the command was denied by policy, or is not executable"),
    (str(NOT_FOUND), "the command was not found"),
)
