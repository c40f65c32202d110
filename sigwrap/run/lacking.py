"""Find what a run lacks here, and whether it may start. `sigwrap doctor` does the same."""

from __future__ import annotations

import errno
from collections.abc import Callable

from sigwrap.errors import DOCTOR, SessionError
from sigwrap.events import LEFT_TO_ANOTHER
from sigwrap.platform import Capability
from sigwrap.run.launch import Launch
from sigwrap.run.settings import Nested, RunSettings
from sigwrap.run.walls import Walls
from sigwrap.start.command import Inherited

Tell = Callable[[str], None]

NOT_TRACED = f"sigwrap may not read or trace the command's process ({DOCTOR})"
_OF_THE_MACHINE = ("rule builtin:unreadable", "rule builtin:traced")


def missing_interception(
    launched: Launch, settings: RunSettings, inherited: Inherited, tell: Tell
) -> list[str]:
    """Return what this run lacks. Raises if the user did not agree to run without interception."""
    if launched.missing is None:
        return []
    refusal = launched.missing
    outer = outer_session(launched, inherited)
    is_nested = refusal.errno == errno.EBUSY
    where = f"session {outer}" if outer else "another supervisor"
    if is_nested and settings.nested is Nested.JOIN:
        tell(f"in {where}: the command runs under its rules and in its log")
        return [f"{LEFT_TO_ANOTHER}{where}"]
    if is_nested and outer:
        raise SessionError(
            f"already in session {outer}",
            "--nested join runs the command under that session's rules",
        )
    if settings.best_effort:
        tell(f"running without interception: {refusal.message}")
        return [f"{LEFT_TO_ANOTHER}{where}" if is_nested else f"interception: {refusal.message}"]
    raise refusal


def outer_session(launched: Launch, inherited: Inherited) -> str:
    """Return the outer session's name; empty if there is none, or its variable is missing."""
    if launched.missing is None or launched.missing.errno != errno.EBUSY:
        return ""
    return inherited.environment.get(b"SIGWRAP_SESSION", b"").decode("utf-8", "replace")


def capabilities_of(launched: Launch, walls: Walls) -> list[str]:
    if launched.listener is None:
        return []
    found = [
        Capability.INTERCEPTION,
        Capability.VERIFICATION,
        Capability.REPLACEMENT,
        Capability.DELIVERY,
    ]
    if walls.takes_descriptors and launched.listener.can_put_descriptors():
        found.append(Capability.RECORDING)
    if launched.waits_through_signals:
        found.append(Capability.WAITS_THROUGH_SIGNALS)
    return [each.value for each in (*found, *walls.capabilities)]


def is_of_the_machine(denial: str) -> bool:
    """Return whether a denial of the command's own process shows a limit of the machine."""
    return any(rule in denial for rule in _OF_THE_MACHINE)
