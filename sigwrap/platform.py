"""What a platform has to offer, drawn from what mediators turned out to need.

A backend is a folder: it hands over calls (Interception), gathers the facts that mediators get
(mediate/exec_facts.py, signal_facts.py, fork.py ForkFacts), and says which capabilities
it has here. linux/ is the only one. Each effect that not every platform can carry out names its
capability in NEEDED_BY; a backend without it answers so that the mediator denies (CannotHold,
Unpreparable, an errno), and never by letting the call go on.
"""

from __future__ import annotations

from sigwrap.bare.enum import Enum
from sigwrap.hints import Protocol
from sigwrap.mediate import effects
from sigwrap.mediate.effects import Effect


class Capability(Enum):
    """The values stand in the log: session_started, `capabilities`."""

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
    Capability.INTERCEPTION: "nothing is decided: a run needs --best-effort",
    Capability.WAITS_THROUGH_SIGNALS: "a signal to a caller breaks off its call, which it repeats",
    Capability.VERIFICATION: "what an exec loads is not compared with what was judged",
    Capability.REPLACEMENT: "a rule with redirect denies",
    Capability.RECORDING: "a rule with record denies",
    Capability.DELIVERY: "a signal that the kernel can't be left to is denied",
    Capability.FORKS: "limits on processes are held at execs only",
    Capability.NETWORK: "network_rules are not held",
    Capability.SIGNAL_WALL: (
        "a signal by a way that is not mediated can leave the session, and memory and descriptors "
        "of other processes of the same user can be taken"
    ),
    Capability.CGROUP_WALL: "who may write to a cgroup can stop and kill everybody in it",
    Capability.FILE_WALL: "file_rules are not held",
}

NEEDED_BY: dict[type[Effect], Capability] = {
    effects.Hold: Capability.VERIFICATION,
    effects.VerifyThenContinue: Capability.VERIFICATION,
    effects.Prepare: Capability.REPLACEMENT,
    effects.Replace: Capability.REPLACEMENT,
    effects.PrepareStubCommand: Capability.RECORDING,
    effects.Send: Capability.DELIVERY,
    effects.SetOwner: Capability.DELIVERY,
    effects.SetAsync: Capability.DELIVERY,
    effects.SetForeground: Capability.DELIVERY,
    effects.TakeDescriptor: Capability.DELIVERY,
    effects.Advise: Capability.DELIVERY,
    effects.CountChildren: Capability.FORKS,
    effects.CountTree: Capability.FORKS,
    effects.ContinueFork: Capability.FORKS,
    effects.Reach: Capability.NETWORK,
    effects.MakeSocket: Capability.NETWORK,
}


class Interception(Protocol):
    """Answers calls that wait, by the id of their notification."""

    def is_waiting(self, notification_id: int) -> bool:
        """False once the caller is gone."""

    def resume(self, notification_id: int) -> bool:
        """The kernel goes on with the call."""

    def fail(self, notification_id: int, error: int) -> bool: ...

    def succeed(self, notification_id: int, value: int) -> bool: ...
