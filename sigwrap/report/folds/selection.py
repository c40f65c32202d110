"""A part of a session: of some time, one rule, one process with all that it started, or what came
of it."""

from __future__ import annotations

from dataclasses import dataclass, field

from sigwrap.events import EXEC_TYPES, Event, number, text, texts
from sigwrap.outcomes import OUTCOMES, outcome
from sigwrap.report.folds.asked import ASKED, AskedAbout

# What `only` may be: an outcome, or whatever became of what somebody was asked about.
ONLY = (*OUTCOMES, ASKED)
_MEMBERS_LIMIT = 65_536
_RULES_KEPT = 500


@dataclass(slots=True, kw_only=True)
class Selection:
    """Has to see every event of the session, in order: whose child a process is, it remembers."""

    since_ns: int | None = None
    until_ns: int | None = None
    rule: str = ""
    process: str = ""  # a pid, or a program's name
    only: frozenset[str] = frozenset()  # of ONLY; empty: every event
    taken: int = 0
    rules_seen: dict[str, None] = field(default_factory=dict)
    _members: dict[int, None] = field(default_factory=dict)
    _asked_about: AskedAbout = field(default_factory=AskedAbout)

    def takes(self, event: Event) -> bool:
        is_member = not self.process or self._is_member(event)
        became = outcome(event) if self.only else ""
        is_asked = ASKED in self.only and self._asked_about.is_it(event, became)
        if self.rule and not self._is_by_rule(event):
            return False
        if not is_member:
            return False
        if self.since_ns is not None and event.time_ns < self.since_ns:
            return False
        if self.until_ns is not None and event.time_ns > self.until_ns:
            return False
        if self.only and not is_asked and became not in self.only:
            return False
        self.taken += 1
        return True

    def _is_by_rule(self, event: Event) -> bool:
        rule = event.payload.get("rule_name")
        if not isinstance(rule, str):
            return False
        if len(self.rules_seen) < _RULES_KEPT:
            self.rules_seen[rule] = None
        return rule == self.rule

    def _is_member(self, event: Event) -> bool:
        pid, payload, members = event.pid, event.payload, self._members
        if event.type == "process_exited":
            is_member = pid in members or self._is_it(pid)
            members.pop(pid, None)
            return is_member
        above = number(payload.get("ppid")), number(payload.get("below"))
        is_member = (
            pid in members
            or self._is_it(pid)
            or any(each in members for each in above)
            or (event.type in EXEC_TYPES and self._is_called(event))
            or number(payload.get("target_pid")) in members
        )
        if is_member and event.type in EXEC_TYPES:
            members[pid] = None
            if len(members) > _MEMBERS_LIMIT:
                del members[next(iter(members))]
        return is_member

    def _is_it(self, pid: int) -> bool:
        return self.process.isdecimal() and str(pid) == self.process

    def _is_called(self, event: Event) -> bool:
        argv = texts(event.payload.get("argv"))
        names = text(event.payload.get("path")), argv[0] if argv else ""
        return any(each.rpartition("/")[2] == self.process for each in names)
