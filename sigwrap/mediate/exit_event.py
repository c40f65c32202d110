"""The event of a process's end."""

from __future__ import annotations

from sigwrap.events import Payload
from sigwrap.policy.judge.signals import signal_name


def exit_payload(ppid: int, comm: str, depth: int, code: int | None, killer: int | None) -> Payload:
    """Return the fields. Of `code` and `killer`, a signal, one is set, or neither if unknown."""
    return {
        "ppid": ppid,
        "comm": comm,
        "depth": depth,
        "exit_code": code,
        "signal": killer,
        "signal_name": None if killer is None else signal_name(killer),
    }
