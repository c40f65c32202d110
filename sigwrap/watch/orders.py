"""What may be asked for at a place where sessions are watched."""

from __future__ import annotations

from sigwrap.tuples import NamedTuple


class Approve(NamedTuple):
    session_id: str
    id: str
    always: bool


class Deny(NamedTuple):
    session_id: str
    id: str
    message: str


class Interrupt(NamedTuple):
    """A session, as by Ctrl+C."""

    session_id: str


class KillAll(NamedTuple):
    """The kill switch on."""

    reason: str


class Lift(NamedTuple):
    """The kill switch off."""


Order = Approve | Deny | Interrupt | KillAll | Lift
