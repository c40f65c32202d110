"""The table of exit statuses, which README and docs quote."""

from __future__ import annotations

BLOCKED = 2  # for `sigwrap hook run`: to an agent, no other status is a denial
LIMIT_REACHED = 124
REFUSED = 125
NOT_EXECUTABLE = 126
NOT_FOUND = 127
INTERRUPTED = 130

# Reasons for the end of a run, in its log.
COMMAND_ENDED = "the command ended"
COMMAND_NOT_RUN = "the command could not be run"


def from_signal(signal_number: int) -> int:
    return 128 + signal_number


TABLE: tuple[tuple[str, str], ...] = (
    ("N", "the command ended by itself with status N"),
    ("128+N", "signal N killed the command"),
    (str(INTERRUPTED), "interrupted: by Ctrl+C, sigwrap signal or a signal to sigwrap"),
    (str(LIMIT_REACHED), "a limit ended the run: wall time, programs started, log size, …"),
    (str(REFUSED), "sigwrap failed or refused to run: kill switch, policy, usage, …"),
    (str(NOT_EXECUTABLE), "the policy denied the command, or it is not executable"),
    (str(NOT_FOUND), "the command was not found"),
)
