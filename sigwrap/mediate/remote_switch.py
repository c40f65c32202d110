"""The remote kill switch: what an answer says, and what comes of answers and of missed polls.

A poll is missed where there is no answer, or one that can't be made sense of. That is an event and
no activation: whoever can cut a line must not be able to end every run, unless the run was asked to
end then (fail closed). Nothing that is heard after an activation takes it back.

Pure: answers go in, what is to be done comes out (run/remote_switch/switch.py does it).
"""

from __future__ import annotations

import json

from sigwrap.escape import printable
from sigwrap.tuples import NamedTuple

MISSES_UNTIL_KILL = 3
_RECORDED_EVERY = 30  # of the misses in a row; the first one besides
_REASON_CHARACTERS = 200
_DEEPEST = 50  # of JSON: a thread's stack is smaller than what Python's own limit is made for
_OPENS, _CLOSES = frozenset(b"[{"), frozenset(b"]}")
_QUOTE, _BACKSLASH = ord('"'), ord("\\")


# What a poll brings


class Killed(NamedTuple):
    reason: str  # a printable line


class Alive(NamedTuple):
    pass


class Missed(NamedTuple):
    reason: str


Answer = Killed | Alive | Missed


# What is to be done


class RecordMissed(NamedTuple):
    reason: str
    in_a_row: int  # up to this one


class RecordReached(NamedTuple):
    missed: int


class TellNeverReached(NamedTuple):
    """Once: the URL may be wrong."""

    reason: str


class Kill(NamedTuple):
    reason: str


Step = RecordMissed | RecordReached | TellNeverReached | Kill


class RemoteSwitchState:
    def __init__(self, shown_url: str, *, fail_closed: bool) -> None:
        self._shown_url = shown_url
        self._fail_closed = fail_closed
        self._missed = 0  # in a row
        self._was_reached = False
        self._has_killed = False

    def on(self, answer: Answer) -> tuple[Step, ...]:
        if self._has_killed:
            return ()
        match answer:
            case Killed(reason=reason):
                self._has_killed = True
                return (*self._reached(), Kill(reason))
            case Alive():
                return self._reached()
            case Missed(reason=reason):
                return self._miss(reason)

    def _reached(self) -> tuple[Step, ...]:
        missed, self._missed = self._missed, 0
        self._was_reached = True
        return (RecordReached(missed),) if missed else ()

    def _miss(self, reason: str) -> tuple[Step, ...]:
        self._missed += 1
        steps: list[Step] = []
        kills = self._fail_closed and self._missed >= MISSES_UNTIL_KILL
        if self._missed == 1 or kills or self._missed % _RECORDED_EVERY == 0:
            steps.append(RecordMissed(reason, self._missed))
        if self._missed == 1 and not self._was_reached:
            steps.append(TellNeverReached(reason))
        if kills:
            self._has_killed = True
            many = f"{self._missed} polls (fail closed)"
            steps.append(Kill(f"no answer from {self._shown_url} for {many}"))
        return tuple(steps)


def read_answer(body: bytes) -> Answer:
    """Only an object can say that nothing is killed: an error page is no answer."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return Missed("the answer is not UTF-8")
    if _depth(body) > _DEEPEST:
        return Missed("the answer is nested too deeply")
    try:
        found = json.loads(text)
    except ValueError:
        return Missed("the answer is not JSON")
    if not isinstance(found, dict):
        return Missed("the answer is not a JSON object")
    killed = found.get("killed", False)
    if killed is True:
        return Killed(_line(found.get("reason")) or "no reason given")
    if killed is False:
        return Alive()
    return Missed("in the answer, killed is neither true nor false")


def _line(reason: object) -> str:
    """Cut on both sides of the escapes: one character may become ten."""
    if not isinstance(reason, str):
        return ""
    line = printable(" ".join(reason[: 4 * _REASON_CHARACTERS].split()))
    return line if len(line) <= _REASON_CHARACTERS else line[:_REASON_CHARACTERS] + "…"


def _depth(body: bytes) -> int:
    """Of brackets outside strings."""
    depth = deepest = 0
    is_string = is_escaped = False
    for char in body:
        if is_string:
            if is_escaped:
                is_escaped = False
            elif char == _BACKSLASH:
                is_escaped = True
            elif char == _QUOTE:
                is_string = False
        elif char == _QUOTE:
            is_string = True
        elif char in _OPENS:
            depth += 1
            deepest = max(deepest, depth)
        elif char in _CLOSES:
            depth -= 1
    return deepest
