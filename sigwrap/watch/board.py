"""Views of all sessions at a moment, and the orders that the user can give. Text is not printable
yet, except that of events."""

from __future__ import annotations

from sigwrap.bare import NamedTuple
from sigwrap.control.killswitch import State

RUNNING, STOPPED, ENDED = "running", "stopped", "ended"


class SessionView(NamedTuple):
    id: str
    name: str
    command: tuple[str, ...]
    state: str  # running, stopped as a whole, or ended
    started_ns: int
    processes: int | None  # None if the session does not say
    denied: int | None  # both None if the session had ended before
    asked: int | None
    last_ns: int  # of its last event
    last: str  # that event, in a few words
    ended: str = ""  # how, in a sentence
    exit_status: int | None = None


class ListedRequest(NamedTuple):
    session_id: str
    session_name: str
    id: str
    kind: str  # exec, signal or connection
    pid: int
    process: str
    depth: int
    what: str  # a command line, or "SIGTERM to 4711 (node)"
    masked: str  # the same without likely secrets, and cut
    is_cut: bool
    runs: str
    loads: str
    files: tuple[str, ...]
    folder: str
    note: str
    rule: str
    policy: str
    message: str  # of the rule
    may_always: bool  # it can be approved for the whole session
    asked_ns: int
    deadline_ns: int  # of the wall clock; then it is denied


class EventLine(NamedTuple):
    seq: int
    time_ns: int
    pid: int
    type: str  # printable
    outcome: (
        str  # allowed, audited, approved, redirected, absorbed, denied, asked, expired; or empty
    )
    text: str  # printable


class Board(NamedTuple):
    now_ns: int
    sessions: tuple[SessionView, ...]  # the latest first, running ones before ended ones
    more: int  # ended sessions that are not here
    waiting: tuple[ListedRequest, ...]  # the oldest first
    killswitch: State | None  # None if it is off
    problems: tuple[str, ...]  # what cannot be seen, and why


class Approve(NamedTuple):
    session_id: str
    id: str
    always: bool


class Deny(NamedTuple):
    session_id: str
    id: str
    message: str


class Interrupt(NamedTuple):
    """Interrupt a session, as Ctrl+C does."""

    session_id: str


class KillAll(NamedTuple):
    """Turn the kill switch on."""

    reason: str


class Lift(NamedTuple):
    """Turn the kill switch off."""


Order = Approve | Deny | Interrupt | KillAll | Lift
