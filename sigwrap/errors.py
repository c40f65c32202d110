"""The errors that sigwrap raises.

SigwrapError            one line for the user: problem, place, next step
├── UsageError          the command line is wrong
├── PolicyError         a policy does not load
│   └── InvalidPolicy   with every problem found (policy/problems.py)
├── StoreError          the event log cannot be written or read
├── KernelError         the kernel refused something (carries errno)
│   └── NoInterception  the seccomp listener is not available
├── SessionError        a session cannot be found, reached or started
│   └── Unreachable     a session that does not answer (protocols/control_client.py)
├── CommandError        the command cannot be run (start/command.py)
├── NotSupervised       a stub without a supervisor (cli/stub.py)
└── InternalError       a bug in sigwrap
"""

from __future__ import annotations

from sigwrap.status import REFUSED

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


class InternalError(SigwrapError):
    """A bug in sigwrap, which the user should report."""

    @classmethod
    def of(cls, bug: Exception) -> InternalError:
        return cls(
            f"internal error: {type(bug).__name__}: {bug}",
            "please report it; SIGWRAP_DEBUG=1 shows the traceback",
        )
