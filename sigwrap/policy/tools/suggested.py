"""A policy that extends the recorded one by rules for what that has denied, asked about or marked.

Each request is decided again: first to learn which rules are needed, then to see what they change.
A rule that would change anything else is made anew, for the very arguments that were recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial

from sigwrap.escape import printable
from sigwrap.events import DECISION_TYPES, SIGNAL_TYPES, Event, kind_of, text, times
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.network import Endpoint
from sigwrap.policy.judge.recorded import programs_here
from sigwrap.policy.judge.request import (
    DEFAULT_RULE,
    Action,
    CommandRequest,
    Decision,
    SignalRequest,
)
from sigwrap.policy.judge.rules import Policy
from sigwrap.policy.tools.again import Again
from sigwrap.policy.tools.draft import (
    COMMAND_RULES,
    NETWORK_RULES,
    SIGNAL_RULES,
    Draft,
    NoRule,
    fit_together,
    rule_line,
    rule_names,
    unused_name,
)
from sigwrap.policy.tools.generate import Request, requests_from_events
from sigwrap.policy.tools.inserted import with_rules_first
from sigwrap.policy.tools.literal import yaml_word
from sigwrap.policy.tools.suggest import drafted, with_note
from sigwrap.tuples import NamedTuple

MOST_RULES = 300
_MOST_CHARACTERS = 150_000  # of all rules: a policy may have 256 Ki
_MOST_REASONS = 50
_ASKERS_SHOWN = 3
_REQUESTS_KEPT = 8
_QUESTIONS_KEPT = 1_000
_WORD_SHOWN = 60
_WHY_SHOWN = 200

ReadEvents = Callable[[], Iterable[Event]]
Load = Callable[[str], Policy]  # of a text that extends the base, as a run would load it


class Only(Enum):
    DENIED = "denied"
    ASKED = "asked"
    AUDITED = "audited"

    @property
    def past(self) -> str:
        return "sent for approval" if self is Only.ASKED else self.value


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    only: frozenset[Only]
    decision: str  # that is to come out

    def covers(self, event: Event, decided: Decision) -> Only | None:
        """`decided`: by the policy, now; that somebody was asked, the event alone doesn't say."""
        found = _what_became_of(event, decided)
        return found if found in self.only else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Of the file: whose requests these are, and what is extended."""

    name: str
    extends: str
    about: str  # the sessions
    became: str  # of what the rules are for
    decision: str
    policy: str
    is_now: str = ""  # what is extended, where it is another than what was recorded
    begins_with: str = ""  # the text that the rules are put into, instead of extending another


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggested:
    text: str  # empty where there is nothing to suggest
    rules: int
    requests: int  # that the rules are for
    unchanged: int  # that no rule can change
    also_changed: int  # beside those


def suggested_policy(
    read: ReadEvents, engine: Engine, load: Load, wanted: Wanted, head: Head
) -> Suggested:
    before = Again(partial(_decided, engine))
    groups = _Groups.of(read(), engine, before, wanted, frozenset())
    too_wide = _changes(read(), before, engine, Engine(load(groups.text(head))), wanted).rules
    if too_wide:
        exact = frozenset(
            key._replace(part=0) for key in groups.keys if groups.name_of(key) in too_wide
        )
        groups = _Groups.of(read(), engine, before, wanted, exact)
    also = _changes(read(), before, engine, Engine(load(groups.text(head))), wanted)
    is_empty = not groups.keys and not groups.reasons
    return Suggested(
        text="" if is_empty else groups.text(head, also.requests),
        rules=len(groups.keys),
        requests=groups.requests,
        unchanged=groups.unchanged,
        also_changed=also.requests,
    )


def _decided(engine: Engine, event: Event) -> Decision:
    [(_, request)] = requests_from_events([event])
    match request:
        case CommandRequest():
            return engine.decide_exec(request, programs_here(event.payload, request))
        case SignalRequest():
            return engine.decide_signal(request)
        case Endpoint():
            return engine.network.decide(request)


class _Key(NamedTuple):
    """What is equal in the requests of one rule."""

    section: str
    keys: tuple[tuple[str, str], ...]
    has_patterns: bool
    part: int  # a rule has only so many patterns
    rule: str  # that decided


@dataclass(slots=True)
class _Group:
    draft: Draft
    became: Only
    why: str  # of all of them; empty where they have no reason in common
    count: int = 0
    by: dict[str, int] = field(default_factory=dict)
    patterns: dict[str, None] = field(default_factory=dict)
    overrides: dict[str, None] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)  # the first ones


class _Groups:
    def __init__(self, engine: Engine, only: frozenset[Only]) -> None:
        self._engine = engine
        self.only = only
        self._groups: dict[_Key, _Group] = {}
        self._parts: dict[_Key, int] = {}
        self.reasons: dict[str, int] = {}
        self.requests = 0
        self.unchanged = 0
        self._left_out = 0
        self._characters = 0

    @classmethod
    def of(
        cls,
        events: Iterable[Event],
        engine: Engine,
        again: Again[Decision],
        wanted: Wanted,
        exact: frozenset[_Key],
    ) -> _Groups:
        groups = cls(engine, wanted.only)
        seen = _with_questions(events, groups)
        for event, request in requests_from_events(seen):
            decided = again.decided(event)
            became = wanted.covers(event, decided)
            if became is None:
                continue
            # Once the first try is let through, there is no other.
            if event.payload.get("retry") is True:
                continue
            rule, count = _rule_of(event, decided), times(event.payload)
            try:
                draft = drafted(event, request, wanted.decision, engine)
                if groups.key_of(draft, rule)._replace(part=0) in exact:
                    draft = drafted(event, request, wanted.decision, engine, exact=True)
            except NoRule as why:
                groups.add_unchanged(event, str(why), count)
            else:
                groups.add((event, request), draft, rule, became, _why(event, decided), count)
        return groups

    def key_of(self, draft: Draft, rule: str) -> _Key:
        key = _Key(draft.section, draft.keys, bool(draft.patterns), 0, rule)
        return key._replace(part=self._parts.get(key, 0))

    def add(
        self,
        asked: tuple[Event, Request],
        draft: Draft,
        rule: str,
        became: Only,
        why: str,
        count: int,
    ) -> None:
        event, request = asked
        key = self.key_of(draft, rule)
        group = self._groups.get(key)
        if group is not None and not _takes(group, draft.patterns):
            first = key._replace(part=0)
            self._parts[first] = key.part + 1
            key, group = self.key_of(draft, rule), None
        if group is None:
            size = sum(map(len, (*draft.patterns, *map("".join, draft.keys)))) + 500
            if len(self._groups) >= MOST_RULES or self._characters + size > _MOST_CHARACTERS:
                self._left_out += count
                self.unchanged += count
                return
            self._characters += size
            group = self._groups[key] = _Group(draft=draft, became=became, why=why)
        new = [each for each in draft.patterns if each not in group.patterns]
        size = sum(map(len, new))
        if group.count and self._characters + size > _MOST_CHARACTERS:
            self._left_out += count
            self.unchanged += count
            return
        self._characters += size
        group.patterns.update(dict.fromkeys(new))
        group.overrides.update(dict.fromkeys(draft.overrides))
        self.requests += count
        group.count += count
        if why != group.why:
            group.why = ""
        if len(group.requests) < _REQUESTS_KEPT and request not in group.requests:
            group.requests.append(request)
        by = _asker(event)
        if by in group.by or len(group.by) < _ASKERS_SHOWN:
            group.by[by] = group.by.get(by, 0) + count

    def add_unchanged(self, event: Event, why: str, count: int) -> None:
        self._add_reason(f"{_what(event)}: {why}", count)

    def add_open(self, question: Event) -> None:
        """One that says too little for a rule."""
        what = _short(text(question.payload.get("what")) or "something", _WORD_SHOWN)
        self._add_reason(f"{what}: not answered yet, and the log has no details", 1)

    def _add_reason(self, what: str, count: int) -> None:
        self.unchanged += count
        if what in self.reasons or len(self.reasons) < _MOST_REASONS:
            self.reasons[what] = self.reasons.get(what, 0) + count
        else:
            self._left_out += count

    @property
    def keys(self) -> list[_Key]:
        return list(self._groups)

    def name_of(self, key: _Key) -> str:
        return self._names()[key]

    def text(self, head: Head, also_changed: int = 0) -> str:
        sections = (COMMAND_RULES, SIGNAL_RULES, NETWORK_RULES)
        rules = {each: list(self._rule_lines(each)) for each in sections}
        lines = list(_about_lines(head, also_changed))
        if head.begins_with:
            text = with_rules_first(head.begins_with, head.name, rules)
            return "\n".join([*lines, *self._last_lines(), "", text])
        lines += ["version: 1", f"name: {head.name}", f"extends: {yaml_word(head.extends)}"]
        for section, found in rules.items():
            if found:
                lines += ["", f"{section}:", *(f"  {each}" for each in found)]
        lines += self._last_lines()
        return "\n".join(lines) + "\n"

    def _names(self) -> dict[_Key, str]:
        taken = rule_names(self._engine.policy)
        return {key: unused_name(group.draft, taken) for key, group in self._groups.items()}

    def _rule_lines(self, section: str) -> Iterator[str]:
        names = self._names()
        found = [(key, group) for key, group in self._groups.items() if key.section == section]
        for key, group in sorted(found, key=lambda each: -each[1].count):
            draft = group.draft._replace(
                patterns=tuple(group.patterns), overrides=tuple(group.overrides)
            )
            draft = with_note(draft, group.requests, self._engine)
            yield _comment(
                f"{_counted(group.count)} {group.became.past}, by {_askers(group)}"
                f"{_by_rule(key.rule, group.why)}"
            )
            yield rule_line(draft, names[key])

    def _last_lines(self) -> Iterator[str]:
        if self.reasons:
            yield ""
            yield "# No rule can change:"
            for what, count in sorted(self.reasons.items(), key=lambda each: -each[1]):
                yield _comment(f"  {_counted(count)} {what}")
        if self._left_out:
            yield ""
            yield _comment(f"Left out, because there are too many: {_counted(self._left_out)}")


def _with_questions(events: Iterable[Event], groups: _Groups) -> Iterator[Event]:
    """Of what was asked about and has neither run nor been refused, an event as if it had run: it
    waits, or whoever asked has ended before there was an answer."""
    waiting: dict[int, Event] = {}
    for event in events:
        if event.type == "session_started":
            yield from _unanswered(waiting, groups)
            waiting = {}
        elif event.type == "approval_requested" and len(waiting) < _QUESTIONS_KEPT:
            waiting[event.pid] = event
        elif event.type in DECISION_TYPES:
            waiting.pop(event.pid, None)
        yield event
    yield from _unanswered(waiting, groups)


def _unanswered(waiting: dict[int, Event], groups: _Groups) -> Iterator[Event]:
    for event in waiting.values():
        asked = event.payload.get("exec")
        if isinstance(asked, dict):
            about = {name: event.payload.get(name) for name in ("rule_name", "comm", "message")}
            yield event._replace(type="exec_allowed", payload={**asked, **about})
        elif Only.ASKED in groups.only:
            groups.add_open(event)


def _takes(group: _Group, patterns: Sequence[str]) -> bool:
    together = list(dict.fromkeys((*group.patterns, *patterns)))
    if len(together) == len(group.patterns):
        return True
    return fit_together(together)


class _Changes(NamedTuple):
    rules: frozenset[str]  # that change more than they are for
    requests: int


def _changes(
    events: Iterable[Event],
    before: Again[Decision],
    base: Engine,
    engine: Engine,
    wanted: Wanted,
) -> _Changes:
    """What else than what was wanted comes out otherwise."""
    after = Again(partial(_decided, engine))
    rules, count = set[str](), 0
    for event, request in requests_from_events(events):
        then, now = before.decided(event), after.decided(event)
        if now.action is not then.action and wanted.covers(event, then) is None:
            rules |= _new_rules(request, engine, base)
            count += times(event.payload)
    return _Changes(frozenset(rules), count)


def _new_rules(request: Request, engine: Engine, base: Engine) -> set[str]:
    match request:
        case CommandRequest():
            rules = {engine.decide_program(each, request).rule for each in request.programs}
        case SignalRequest():
            rules = {engine.decide_signal(request).rule}
        case Endpoint():
            rules = {engine.network.decide(request).rule}
    return rules - rule_names(base.policy)


def _what_became_of(event: Event, decided: Decision) -> Only | None:
    rule = text(event.payload.get("rule_name"))
    by_policy = rule == DEFAULT_RULE or not rule.startswith(("builtin:", "limits.", "trust."))
    if decided.action is Action.APPROVE and by_policy:
        return Only.ASKED
    if event.type in ("exec_denied", "signal_blocked", "connection_denied"):
        return Only.DENIED
    if decided.action is Action.AUDIT and event.payload.get("decision") == Action.AUDIT.value:
        return Only.AUDITED
    return None


def _rule_of(event: Event, decided: Decision) -> str:
    return text(event.payload.get("rule_name")) or decided.rule


def _why(event: Event, decided: Decision) -> str:
    """The rule's message; where another one decided then, what was recorded of it."""
    if decided.message and decided.rule == event.payload.get("rule_name"):
        return decided.message
    reason = text(event.payload.get("reason"))
    return "" if reason.startswith("rule ") else reason


def _by_rule(rule: str, why: str) -> str:
    shown = f"; rule {_short(rule, _WORD_SHOWN)}" if rule else ""
    return f"{shown}: {_short(why, _WHY_SHOWN)}" if why else shown


def _asker(event: Event) -> str:
    """A process by its name: pids of a session that is over say nothing."""
    name = "source_cmd" if event.type in SIGNAL_TYPES else "comm"
    return text(event.payload.get(name))[:_WORD_SHOWN] or "?"


def _askers(group: _Group) -> str:
    others = group.count - sum(group.by.values())
    names = [f"{name} {count} times" if count > 1 else name for name, count in group.by.items()]
    if len(names) == 1:
        names = list(group.by)
    return ", ".join([*names, f"others {_counted(others)}"] if others else names)


def _what(event: Event) -> str:
    payload = event.payload
    match kind_of(event.type):
        case "exec":
            return _short(text(payload.get("path")) or "an exec", _WORD_SHOWN)
        case "connection":
            return _short(text(payload.get("destination")) or "a connection", _WORD_SHOWN)
    name = _short(text(payload.get("signal_name")) or "a signal", _WORD_SHOWN)
    return f"{name} to {_short(text(payload.get('target_cmd')) or '?', _WORD_SHOWN)}"


def _counted(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _short(word: str, longest: int) -> str:
    word = " ".join(word[: longest * 4].split(" "))
    return word if len(word) <= longest else f"{word[: longest - 1]}…"


def _about_lines(head: Head, also_changed: int) -> Iterator[str]:
    what = f"Rules that {head.decision} actions that were {head.became} in {head.about}"
    yield _comment(f"{what}, under the policy {head.policy}.")
    yield "# Read each rule before you use it: a program may have tried something it should not do."
    yield "# Delete the rules for actions that should stay as they were. A rule with subcommands"
    yield "# matches all command lines that begin with them. A rule with args_patterns matches if a"
    yield "# pattern fits all arguments together, or one of them. Where a rule allows more than was"
    yield "# recorded, a note at the end of its line says so."
    yield "# Then: sigwrap policy check FILE, and sigwrap -p FILE -- COMMAND"
    if also_changed:
        others = "1 other decision" if also_changed == 1 else f"{also_changed} other decisions"
        yield f"# These rules also change {others}."
    if head.begins_with:
        yield _comment(f"{head.extends} {head.is_now}. Below is its text from the log,")
        yield "# with these rules before its own."


def _comment(line: str) -> str:
    return f"# {printable(line)}"
