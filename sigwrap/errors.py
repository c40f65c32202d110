"""The errors that sigwrap raises, and the table of exit statuses, which README and docs quote."""

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


# The errors that sigwrap raises.

DOCTOR = "sigwrap doctor shows what this machine lacks"


class SigwrapError(Exception):
    """An error for the user: `lines` are shown, and sigwrap exits with `status`."""

    status = REFUSED

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message

    @property
    def lines(self) -> list[str]:
        """Return the lines to show, which may hold untrusted text; most errors have one."""
        return [str(self)]


class UsageError(SigwrapError):
    """The command line is wrong. The message comes with a pointer to --help."""


class PolicyError(SigwrapError):
    """A policy does not load, so no command may run under it."""


class StoreError(SigwrapError):
    """The event log cannot be written or read: a decision becomes a denial, a start fails."""


class KernelError(SigwrapError):
    """A system call failed: the message names it, `errno` is its error."""

    def __init__(self, message: str, errno: int, hint: str = "") -> None:
        super().__init__(message, hint)
        self.errno = errno


class NoInterception(KernelError):
    """The seccomp listener is not available: sigwrap refuses to run without --best-effort."""


class SessionError(SigwrapError):
    """The session that the user named cannot be used."""


class ObjectsError(SigwrapError):
    """A folder or bucket of shipped sessions cannot be used, and a retry would not help."""


class InternalError(SigwrapError):
    """A bug in sigwrap, which the user should report."""

    @classmethod
    def of(cls, bug: Exception) -> InternalError:
        return cls(
            f"internal error: {type(bug).__name__}: {bug}",
            "please report it; SIGWRAP_DEBUG=1 shows the traceback",
        )
