"""Capabilities that a platform offers to the mediators.

A backend is a package: it hands over calls (Interception), gathers the facts for mediators
(mediate/exec_facts.py, signal_facts.py, fork.py ForkFacts) and reports its capabilities. linux/ is
the only one. Without a capability, a backend answers so that the mediator denies (CannotHold,
Unpreparable, an errno); it never lets the call go on.
"""

from __future__ import annotations

from sigwrap.bare import Enum, Protocol


class Capability(Enum):
    """Capabilities. The log has the values: session_started, `capabilities`."""

    INTERCEPTION = "interception"
    WAITS_THROUGH_SIGNALS = "waits_through_signals"
    VERIFICATION = "verification"
    REPLACEMENT = "replacement"
    RECORDING = "recording"
    DELIVERY = "delivery"
    FORKS = "forks"
    NETWORK = "network"
    SIGNAL_WALL = "signal_wall"
    CGROUP_WALL = "cgroup_wall"
    FILE_WALL = "file_wall"


WITHOUT: dict[Capability, str] = {
    Capability.INTERCEPTION: "no rule is enforced; a run needs --best-effort",
    Capability.WAITS_THROUGH_SIGNALS: (
        "a signal can interrupt a call that sigwrap is deciding; the caller repeats the call"
    ),
    Capability.VERIFICATION: "the loaded program is not compared with the judged one",
    Capability.REPLACEMENT: "rules with `redirect` deny",
    Capability.RECORDING: "rules with `record` deny",
    Capability.DELIVERY: "a signal that sigwrap has to send itself is denied",
    Capability.FORKS: "process limits are checked at execs only",
    Capability.NETWORK: "`network_rules` are not enforced",
    Capability.SIGNAL_WALL: (
        "a signal by a call that is not mediated can leave this session, and processes in the "
        "session can take the memory and descriptors of the user's other processes"
    ),
    Capability.CGROUP_WALL: (
        "a process that may write to a cgroup can stop or kill all processes in it"
    ),
    Capability.FILE_WALL: "`file_rules` are not enforced",
}


class Interception(Protocol):
    """Answers waiting calls by their notification id."""

    def is_waiting(self, notification_id: int) -> bool:
        """Return False if the caller has exited."""

    def resume(self, notification_id: int) -> bool:
        """Let the kernel carry out the call."""

    def fail(self, notification_id: int, error: int) -> bool: ...

    def succeed(self, notification_id: int, value: int) -> bool: ...
