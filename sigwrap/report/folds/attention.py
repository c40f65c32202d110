"""What one would act on first: execs, signals and connections that didn't simply go through, in
groups.

A group is what one rule has done to one command, to one signal from one program to another, or to
one destination. A shell that is refused a command in three folders of PATH was refused once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sigwrap.events import EXEC_TYPES, Event, Payload, kind_of, text, texts, times
from sigwrap.outcomes import ANSWER_OF, APPROVED, AUDITED, OUTCOMES
from sigwrap.policy.judge.subcommand import has_subcommands, subcommand
from sigwrap.tuples import NamedTuple

GROUPS_LIMIT = 1_000
_ASKERS_KEPT = 5
_EXAMPLES_KEPT = 3
_ANSWERS_KEPT = 1_000
_CHARACTERS_KEPT = 200


class By(NamedTuple):
    """Who asked for it."""

    pid: int  # of the first one that ran this
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    first: Event
    last_seq: int
    outcome: str
    answer: str  # what came of asking somebody; empty where nobody was asked
    count: int
    rule: str
    by: tuple[tuple[By, int], ...]
    by_more: int  # how often by others
    command: tuple[str, ...]  # of an exec: the program, and its subcommand where it has such
    examples: tuple[Event, ...]  # with other words than the first
    each: tuple[int, ...]  # how often with the words of the first, and with those of each example
    with_others: int  # how often with words that were not kept

    @property
    def kind(self) -> str:
        return kind_of(self.first.type)


@dataclass(frozen=True, slots=True, kw_only=True)
class Attention:
    groups: tuple[Group, ...]
    more: int  # how often something else did not simply go through


_Key = tuple[str, str, str, tuple[str, ...]]
"""What became of it, what came of asking, by which rule, and what it was. No class of our own: it
is compared for each event."""


@dataclass(slots=True)
class _Growing:
    first: Event
    last_seq: int
    count: int = 0
    by: dict[str, list[int]] = field(default_factory=dict)  # command: its first pid, how often
    by_more: int = 0
    examples: list[Event] = field(default_factory=list)
    each: list[int] = field(default_factory=lambda: [0])
    with_others: int = 0


class AttentionFold:
    def __init__(self) -> None:
        self._groups: dict[_Key, _Growing] = {}
        self._more = 0
        self._has_audited = False
        self._answers: dict[int, str] = {}

    def answered(self, event: Event) -> None:
        self._answers[event.pid] = ANSWER_OF[event.type]
        if len(self._answers) > _ANSWERS_KEPT:
            del self._answers[next(iter(self._answers))]

    def ended(self, pid: int) -> None:
        if pid in self._answers:
            del self._answers[pid]

    def add(self, event: Event, became: str, by: By) -> None:
        """One that became anything but `allowed`."""
        payload = event.payload
        rule = text(payload.get("rule_name"))
        is_exec = event.type in EXEC_TYPES
        answer = self._answers.pop(event.pid, "") if self._answers else ""
        key = (
            became,
            # A yes to a script is one to what it runs, about which nobody is asked again.
            APPROVED if became == APPROVED else answer,
            rule,
            _WHAT[kind_of(event.type)](payload),
        )
        group = self._groups.get(key)
        if group is None:
            if len(self._groups) >= GROUPS_LIMIT and not self._makes_room_for(key):
                self._more += times(event.payload)
                return
            self._has_audited |= became == AUDITED
            group = self._groups[key] = _Growing(first=event, last_seq=event.seq)
        count = times(event.payload)
        group.count += count
        if is_exec:
            _count_words(group, event, count)
        else:
            group.each[0] += count
        group.last_seq = event.seq
        known = group.by.get(by.command)
        if known is not None:
            known[1] += count
        elif len(group.by) < _ASKERS_KEPT:
            group.by[by.command] = [by.pid, count]
        else:
            group.by_more += count

    def result(self) -> Attention:
        """The most serious first; of equal ones those about which nobody was asked, and of these
        what came first."""
        groups = [
            Group(
                first=group.first,
                last_seq=group.last_seq,
                outcome=became,
                answer=answer,
                count=group.count,
                rule=rule,
                by=tuple((By(pid, words), n) for words, (pid, n) in group.by.items()),
                by_more=group.by_more,
                command=command if group.first.type in EXEC_TYPES else (),
                examples=tuple(group.examples),
                each=tuple(group.each),
                with_others=group.with_others,
            )
            for (became, answer, rule, command), group in self._groups.items()
        ]
        groups.sort(
            key=lambda each: (OUTCOMES.index(each.outcome), each.answer != "", each.first.seq)
        )
        return Attention(groups=tuple(groups), more=self._more)

    def _makes_room_for(self, key: _Key) -> bool:
        """What was only marked goes for what was not let through."""
        if key[0] == AUDITED or not self._has_audited:
            return False
        for other, group in reversed(self._groups.items()):
            if other[0] == AUDITED:
                self._more += group.count
                del self._groups[other]
                return True
        self._has_audited = False
        return False


def _count_words(group: _Growing, event: Event, count: int) -> None:
    argv = event.payload.get("argv")
    if argv == group.first.payload.get("argv"):
        group.each[0] += count
        return
    for at, example in enumerate(group.examples, 1):
        if argv == example.payload.get("argv"):
            group.each[at] += count
            return
    if len(group.examples) < _EXAMPLES_KEPT:
        group.examples.append(event)
        group.each.append(count)
    else:
        group.with_others += count


def _command(payload: Payload) -> tuple[str, ...]:
    argv = texts(payload.get("argv"))
    path = text(payload.get("path")) or (argv[0] if argv else "")
    name = path.rpartition("/")[2][:_CHARACTERS_KEPT]
    if has_subcommands(name):
        return name, subcommand(name, argv)[:_CHARACTERS_KEPT]
    return (name,)


def _signal(payload: Payload) -> tuple[str, ...]:
    fields = ("signal_name", "source_cmd", "target_cmd", "target_type", "original_signal")
    return tuple(str(payload.get(each))[:_CHARACTERS_KEPT] for each in fields)


def _connection(payload: Payload) -> tuple[str, ...]:
    fields = ("direction", "protocol", "destination")
    return tuple(str(payload.get(each))[:_CHARACTERS_KEPT] for each in fields)


def _file(payload: Payload) -> tuple[str, ...]:
    return tuple(str(payload.get(each))[:_CHARACTERS_KEPT] for each in ("operation", "path"))


_WHAT = {"file": _file, "exec": _command, "signal": _signal, "connection": _connection}
