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
    """Show `lines` and exit with `status`; the lines may hold untrusted text."""

    status = REFUSED

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message

    @property
    def lines(self) -> list[str]:
        """Return one line; some subclasses have more."""
        return [str(self)]


class UsageError(SigwrapError):
    """Show it with a pointer to --help."""


class PolicyError(SigwrapError):
    """Nothing may run under this policy; show the message."""


class StoreError(SigwrapError):
    """Turn the decision into a denial; at start-up, refuse to run."""


class KernelError(SigwrapError):
    """Look at `errno`; the call named in the message failed with it."""

    def __init__(self, message: str, errno: int, hint: str = "") -> None:
        super().__init__(message, hint)
        self.errno = errno


class NoInterception(KernelError):
    """Refuse to run, unless the user asked for --best-effort."""


class SessionError(SigwrapError):
    """Show it; the user named a session that can't be used."""


class InternalError(SigwrapError):
    """Show it and ask for a report."""

    @classmethod
    def of(cls, bug: Exception) -> InternalError:
        return cls(
            f"internal error: {type(bug).__name__}: {bug}",
            "please report it; SIGWRAP_DEBUG=1 shows the traceback",
        )
