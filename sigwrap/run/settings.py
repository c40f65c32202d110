from __future__ import annotations

from collections.abc import Mapping

from sigwrap.bare.enum import Enum
from sigwrap.mediate.interrupts import InterruptsEnd
from sigwrap.tuples import NamedTuple

DEFAULT_POLICY = "agent-default"
DEFAULT_GRACE_S = 10.0
DEFAULT_APPROVAL_TIMEOUT_S = 300.0


class Nested(Enum):
    REFUSE = "refuse"
    JOIN = "join"


class ApprovalMode(Enum):
    """Who may answer a request for approval."""

    AUTO = "auto"  # the terminal where there is one, and the control socket
    TTY = "tty"
    CONTROL = "control"
    DENY = "deny"


class Report(Enum):
    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


def is_unattended(environment: Mapping[bytes, bytes]) -> bool:
    """As the services that run jobs say it."""
    return environment.get(b"CI", b"").lower() not in (b"", b"0", b"false")


class RunSettings(NamedTuple):
    command: tuple[str, ...]
    policy: str = DEFAULT_POLICY
    root: str = "."
    approvals: ApprovalMode = ApprovalMode.AUTO
    approval_timeout_s: float = DEFAULT_APPROVAL_TIMEOUT_S
    name: str = ""
    store: str = ""
    grace_s: float = DEFAULT_GRACE_S
    report: Report = Report.AUTO
    best_effort: bool = False
    nested: Nested = Nested.REFUSE
    durable: bool = False
    interrupt: InterruptsEnd = InterruptsEnd.AUTO
    die_by_signal: bool = False
    log_size_bytes: int = 0  # as the policy says
    killswitch_url: str = ""  # as $SIGWRAP_KILLSWITCH_URL says
    killswitch_fail_closed: bool = False
    profile: str = ""
