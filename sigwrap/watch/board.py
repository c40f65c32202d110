"""What is seen at a moment, of every session of a store. Nothing in it is fit for a terminal or a
page yet, but for the texts of events."""

from __future__ import annotations

from sigwrap.store.killswitch import State
from sigwrap.tuples import NamedTuple

RUNNING, STOPPED, ENDED = "running", "stopped", "ended"


class Seen(NamedTuple):
    """A session."""

    id: str
    name: str
    command: tuple[str, ...]
    state: str  # running, stopped as a whole, or ended
    started_ns: int
    processes: int | None  # None where the session doesn't say
    denied: int | None  # both None of one that had ended before
    asked: int | None
    last_ns: int  # of its last event
    last: str  # that event, in a few words
    ended: str = ""  # how, in a sentence
    exit_status: int | None = None


class Waits(NamedTuple):
    """A question that waits for an answer."""

    session_id: str
    session_name: str
    id: str
    kind: str  # exec, signal or connection
    pid: int
    process: str
    depth: int
    what: str  # a command line, or "SIGTERM to 4711 (node)"
    masked: str  # the same without what looks like a secret, and cut
    is_cut: bool
    runs: str
    loads: str
    files: tuple[str, ...]
    folder: str
    note: str
    rule: str
    policy: str
    message: str  # of the rule
    may_always: bool  # a yes can be one for the whole session
    asked_ns: int
    deadline_ns: int  # of the clock on the wall; then it is no


class Line(NamedTuple):
    """An event."""

    seq: int
    time_ns: int
    pid: int
    type: str  # printable
    outcome: str  # allowed, audited, approved, redirected, absorbed, denied, asked; or empty
    text: str  # printable


class Board(NamedTuple):
    now_ns: int
    sessions: tuple[Seen, ...]  # the latest first, those that run before those that have ended
    more: int  # sessions that have ended and aren't here
    waiting: tuple[Waits, ...]  # the oldest first
    killswitch: State | None  # None where it is off
    problems: tuple[str, ...]  # what can't be seen, and why
