"""The remote kill switch: its answers, and the steps after answers and missed polls.

A poll is missed if no valid answer comes. A missed poll is an event and kills nothing: an attacker
that cuts the network must not end every run. With --killswitch-fail-closed, three misses in a row
kill the run. A kill cannot be taken back.

Pure: answers go in, steps come out (control/remote_switch.py carries them out).
"""

from __future__ import annotations

import json

from sigwrap.bare import NamedTuple
from sigwrap.text import printable

MISSES_UNTIL_KILL = 3
_RECORDED_EVERY = 30  # misses in a row, after the first
_REASON_CHARACTERS = 200


# Answers


class Killed(NamedTuple):
    reason: str  # a printable line


class Alive(NamedTuple):
    pass


class Missed(NamedTuple):
    reason: str


Answer = Killed | Alive | Missed


# Steps


class RecordMissed(NamedTuple):
    reason: str
    in_a_row: int  # this one included


class RecordReached(NamedTuple):
    missed: int


class TellNeverReached(NamedTuple):
    """Tell the user once that the URL may be wrong."""

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
    """Parse the body. Only a JSON object can keep the run alive: an error page cannot."""
    try:
        found = json.loads(body.decode())
    except UnicodeDecodeError:
        return Missed("the answer is not UTF-8")
    except (ValueError, RecursionError):
        return Missed("the answer is not JSON")
    if not isinstance(found, dict):
        return Missed("the answer is not a JSON object")
    match found.get("killed", False), found.get("reason"):
        case True, reason:
            return Killed(_line(reason) or "no reason given")
        case False, _:
            return Alive()
    return Missed("in the answer, killed is neither true nor false")


def _line(reason: object) -> str:
    """Return a short printable line. Escaping can turn one character into ten, so cut twice."""
    if not isinstance(reason, str):
        return ""
    line = printable(" ".join(reason[: 4 * _REASON_CHARACTERS].split()))
    return line if len(line) <= _REASON_CHARACTERS else line[:_REASON_CHARACTERS] + "…"
