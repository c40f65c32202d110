"""A part of a session: a span of time, one rule, one process with all that it started, or actions
with one outcome."""

from __future__ import annotations

from dataclasses import dataclass, field

from sigwrap.events import (
    APPROVAL_ANSWERS,
    APPROVED,
    EXEC_TYPES,
    OUTCOMES,
    Event,
    number,
    outcome,
    text,
    texts,
)
from sigwrap.report.folds.bounded import Latest

ASKED = "asked"
# What `only` may be: an outcome, or ASKED for whatever became of an approval request.
ONLY = (*OUTCOMES, ASKED)
_MEMBERS_LIMIT = 65_536
_RULES_KEPT = 500
_ANSWERED_LIMIT = 1_000


class AskedAbout:
    """Finds approval requests, their answers, and the actions that follow from them.

    It has to see every event, in order.
    """

    def __init__(self) -> None:
        self.answered: Latest[int, bool] = Latest(_ANSWERED_LIMIT)  # by pid

    def is_it(self, event: Event, became: str) -> bool:
        """Return whether this event, with this outcome, belongs to an approval request."""
        if became:
            return self.answered.pop(event.pid, False) or became == APPROVED
        if event.type == "process_exited":
            self.answered.pop(event.pid, None)
        elif event.type in APPROVAL_ANSWERS:
            self.answered[event.pid] = True
            return True
        return event.type == "approval_requested"


@dataclass(slots=True, kw_only=True)
class Selection:
    """It has to see every event of the session, in order, to know the parent of each process."""

    since_ns: int | None = None
    until_ns: int | None = None
    rule: str = ""
    process: str = ""  # a pid, or a program's name
    only: frozenset[str] = frozenset()  # of ONLY; empty: every event
    taken: int = 0
    rules_seen: dict[str, None] = field(default_factory=dict)
    _members: Latest[int, None] = field(default_factory=lambda: Latest(_MEMBERS_LIMIT))
    _asked_about: AskedAbout = field(default_factory=AskedAbout)

    def takes(self, event: Event) -> bool:
        is_member = not self.process or self._is_member(event)
        became = outcome(event) if self.only else ""
        is_asked = ASKED in self.only and self._asked_about.is_it(event, became)
        is_taken = (
            (not self.rule or self._is_by_rule(event))
            and is_member
            and (self.since_ns is None or event.time_ns >= self.since_ns)
            and (self.until_ns is None or event.time_ns <= self.until_ns)
            and (not self.only or is_asked or became in self.only)
        )
        self.taken += is_taken
        return is_taken

    def _is_by_rule(self, event: Event) -> bool:
        rule = event.payload.get("rule_name")
        if not isinstance(rule, str):
            return False
        if len(self.rules_seen) < _RULES_KEPT:
            self.rules_seen[rule] = None
        return rule == self.rule

    def _is_member(self, event: Event) -> bool:
        pid, payload, members = event.pid, event.payload, self._members
        is_it = pid in members or (self.process.isdecimal() and str(pid) == self.process)
        if event.type == "process_exited":
            members.pop(pid, None)
            return is_it
        related = ("ppid", "below", "target_pid")
        is_it = (
            is_it
            or any(number(payload.get(each)) in members for each in related)
            or (event.type in EXEC_TYPES and self._is_called(event))
        )
        if is_it and event.type in EXEC_TYPES:
            members[pid] = None
        return is_it

    def _is_called(self, event: Event) -> bool:
        argv = texts(event.payload.get("argv"))
        names = text(event.payload.get("path")), argv[0] if argv else ""
        return any(each.rpartition("/")[2] == self.process for each in names)
