"""Execs, signals, connections and files that were not simply allowed, in groups.

A group is what one rule did to one command, to one signal from one program to another, or to one
destination.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sigwrap.events import EXEC_TYPES, Event, Payload, kind_of, text, texts, times
from sigwrap.outcomes import ANSWER_OF, APPROVED, AUDITED, OUTCOMES
from sigwrap.policy.judge.subcommand import has_subcommands, subcommand
from sigwrap.tuples import NamedTuple

GROUPS_LIMIT = 1_000
_CALLERS_KEPT = 5
_LINES_KEPT = 4
_ANSWERS_KEPT = 1_000
_CHARACTERS_KEPT = 200


class By(NamedTuple):
    """The process that asked for an action."""

    pid: int  # of the first one that ran this command
    command: str


@dataclass(slots=True, kw_only=True)
class Group:
    first: Event
    outcome: str
    answer: str  # to the approval request; empty if there was none
    rule: str
    command: tuple[str, ...]  # of an exec: the program, and its subcommand if it has any
    last_seq: int = 0
    count: int = 0
    by: dict[str, tuple[By, int]] = field(default_factory=dict)  # by command, how often
    by_more: int = 0  # how often by others
    lines: list[tuple[Event, int]] = field(default_factory=list)  # the first of each command line
    other_lines: int = 0  # how often with other command lines

    @property
    def kind(self) -> str:
        return kind_of(self.first.type)

    def add(self, event: Event, by: By) -> None:
        count = times(event.payload)
        self.count += count
        self.last_seq = event.seq
        self._add_line(event, count)
        if (known := self.by.get(by.command)) is not None:
            self.by[by.command] = known[0], known[1] + count
        elif len(self.by) < _CALLERS_KEPT:
            self.by[by.command] = by, count
        else:
            self.by_more += count

    def _add_line(self, event: Event, count: int) -> None:
        argv = event.payload.get("argv") if self.command else None
        for at, (known, often) in enumerate(self.lines):
            if not self.command or known.payload.get("argv") == argv:
                self.lines[at] = known, often + count
                return
        if len(self.lines) < _LINES_KEPT:
            self.lines.append((event, count))
        else:
            self.other_lines += count


class Attention:
    def __init__(self) -> None:
        self._groups: dict[tuple[object, ...], Group] = {}
        self._kept = {True: 0, False: 0}  # by whether they are audited
        self._answers: dict[int, str] = {}
        self.more = 0  # how often something else was not simply allowed

    def answered(self, event: Event) -> None:
        self._answers[event.pid] = ANSWER_OF[event.type]
        if len(self._answers) > _ANSWERS_KEPT:
            del self._answers[next(iter(self._answers))]

    def ended(self, pid: int) -> None:
        self._answers.pop(pid, None)

    def add(self, event: Event, became: str, by: By) -> None:
        """Take an event whose outcome is not `allowed`."""
        payload = event.payload
        rule = text(payload.get("rule_name"))
        answer = self._answers.pop(event.pid, "") if self._answers else ""
        if became == APPROVED:
            answer = APPROVED  # approval of a script covers what it runs
        what = _WHAT[kind_of(event.type)](payload)
        key = became, answer, rule, what
        group = self._groups.get(key)
        if group is None:
            # Audited groups have their own limit, so that they displace no denied ones.
            if self._kept[became == AUDITED] >= GROUPS_LIMIT:
                self.more += times(payload)
                return
            self._kept[became == AUDITED] += 1
            command = what if event.type in EXEC_TYPES else ()
            group = Group(first=event, outcome=became, answer=answer, rule=rule, command=command)
            self._groups[key] = group
        group.add(event, by)

    @property
    def groups(self) -> list[Group]:
        """The most serious first; among equals, those without an approval request."""
        found = self._groups.values()
        return sorted(
            found,
            key=lambda each: (OUTCOMES.index(each.outcome), each.answer != "", each.first.seq),
        )


def _command(payload: Payload) -> tuple[str, ...]:
    argv = texts(payload.get("argv"))
    path = text(payload.get("path")) or (argv[0] if argv else "")
    name = path.rpartition("/")[2][:_CHARACTERS_KEPT]
    if has_subcommands(name):
        return name, subcommand(name, argv)[:_CHARACTERS_KEPT]
    return (name,)


def _signal(payload: Payload) -> tuple[str, ...]:
    names = "signal_name", "source_cmd", "target_cmd", "target_type", "original_signal"
    return _fields(payload, names)


def _connection(payload: Payload) -> tuple[str, ...]:
    return _fields(payload, ("direction", "protocol", "destination"))


def _file(payload: Payload) -> tuple[str, ...]:
    return _fields(payload, ("operation", "path"))


def _fields(payload: Payload, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(str(payload.get(each))[:_CHARACTERS_KEPT] for each in names)


_WHAT = {"file": _file, "exec": _command, "signal": _signal, "connection": _connection}
