"""A policy that extends the recorded one by rules for what a session denied or asked about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from sigwrap.bare import NamedTuple
from sigwrap.events import DECISION_TYPES, DENIED_TYPES, Event, kind_of, text, times
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.request import DEFAULT_RULE, Action, Decision
from sigwrap.policy.judge.rules import Policy
from sigwrap.policy.tools.again import Again, decide_event
from sigwrap.policy.tools.draft import SECTIONS
from sigwrap.policy.tools.literal import yaml_word
from sigwrap.policy.tools.show import policy_text
from sigwrap.policy.tools.suggest import Drafts, Suggester
from sigwrap.text import printable, shortened

MOST_CHARACTERS = 150_000  # of all rules: a policy has at most 256 Ki
_MOST_REASONS = 50
_OPEN_REQUESTS_KEPT = 1_000
_WORD_SHOWN = 60
_WHY_SHOWN = 200

_ADVICE = """\
Read each rule before you use it: a program may have tried something it should not
do. Delete the rules for actions that should stay as they were. A command rule
matches only these arguments.
Then: sigwrap policy check FILE, and sigwrap -p FILE -- COMMAND"""


class Only(Enum):
    """Outcomes of actions that rules are made for."""

    DENIED = "denied"
    ASKED = "asked"
    AUDITED = "audited"

    @property
    def past(self) -> str:
        return "sent for approval" if self is Only.ASKED else self.value


class Head(NamedTuple):
    """The start of the policy."""

    name: str
    extends: str
    session_id: str
    base: Policy | None = None  # the policy of the session, if it has changed since


class Learned(NamedTuple):
    text: str  # empty if there is nothing to learn
    rules: int


def learned_policy(
    events: Iterable[Event], engine: Engine, only: frozenset[Only], head: Head
) -> Learned:
    """Learn from the events of one session under the policy of `engine`."""
    found = _Found(engine, only)
    found.read(events)
    is_empty = not (found.proposals or found.reasons or found.left_out)
    return Learned("" if is_empty else found.text(head), len(found.proposals))


@dataclass(slots=True)
class _Proposal:
    """Rules, and what they are for."""

    lines: list[str]
    became: Only
    rule: str  # that decided
    why: str  # empty if the requests have different reasons
    count: int = 0


class _Found:
    def __init__(self, engine: Engine, only: frozenset[Only]) -> None:
        self._policy, self._only = engine.policy, only
        self._decision = "deny" if Only.AUDITED in only else "allow"
        self._suggester = Suggester(engine)
        self._decisions = Again(lambda event: decide_event(engine, event))
        self._characters = 0
        self.proposals: dict[Drafts, _Proposal] = {}
        self.reasons: Counter[str] = Counter()
        self.left_out = 0

    def read(self, events: Iterable[Event]) -> None:
        """Read a session. An approval request without an outcome counts as its exec."""
        waiting: dict[int, Event] = {}
        for event in events:
            if event.type == "approval_requested" and len(waiting) < _OPEN_REQUESTS_KEPT:
                waiting[event.pid] = event
            elif event.type in DECISION_TYPES:
                waiting.pop(event.pid, None)
                self._read(event)
        for event in waiting.values():
            asked = event.payload.get("exec")
            if isinstance(asked, dict):
                about = {name: event.payload.get(name) for name in ("rule_name", "comm", "message")}
                self._read(event._replace(type="exec_allowed", payload={**asked, **about}))
            elif Only.ASKED in self._only:
                what = shortened(text(event.payload.get("what")) or "something", _WORD_SHOWN)
                self._add_reason(f"{what}: not answered yet, and the log has no details", 1)

    def _read(self, event: Event) -> None:
        decided = self._decisions.decided(event)
        became = _outcome(event, decided)
        # A search along PATH ends as soon as the first attempt is allowed.
        if became not in self._only or event.payload.get("retry") is True:
            return
        drafts = self._suggester.drafts(event, self._decision)
        if isinstance(drafts, str):
            self._add_reason(f"{_what(event)}: {drafts}", times(event.payload))
        else:
            self._add(event, drafts, decided, became)

    def _add(self, event: Event, drafts: Drafts, decided: Decision, became: Only) -> None:
        why, proposal = _why(event, decided), self.proposals.get(drafts)
        if proposal is None:
            lines = list(map(self._suggester.line, drafts))
            size = sum(map(len, lines))
            if self._characters + size > MOST_CHARACTERS:
                self.left_out += times(event.payload)
                return
            self._characters += size
            rule = text(event.payload.get("rule_name")) or decided.rule
            proposal = self.proposals[drafts] = _Proposal(lines, became, rule, why)
        proposal.count += times(event.payload)
        if why != proposal.why:
            proposal.why = ""

    def _add_reason(self, what: str, count: int) -> None:
        if what in self.reasons or len(self.reasons) < _MOST_REASONS:
            self.reasons[what] += count
        else:
            self.left_out += count

    def text(self, head: Head) -> str:
        lines = [*map(_comment, self._comments(head)), ""]
        if head.base is None:
            lines += ["version: 1", f"name: {head.name}", f"extends: {yaml_word(head.extends)}"]
        else:
            lines += policy_text(head.base._replace(name=head.name, bases=())).split("\n")
        indent = "  " if head.base is None else ""  # as policy show has it
        for section in SECTIONS:
            rules = [indent + each for each in self._rule_lines(section)]
            if rules and f"{section}:" not in lines:
                lines += ["", f"{section}:"]
            if rules:
                at = lines.index(f"{section}:") + 1
                lines[at:at] = rules
        return "\n".join(lines) + "\n"

    def _comments(self, head: Head) -> Iterator[str]:
        became = " or ".join(each.past for each in Only if each in self._only)
        yield (
            f"Rules that {self._decision} actions that were {became} in {head.session_id}, "
            f"under the policy {self._policy.name}."
        )
        yield from _ADVICE.split("\n")
        if head.base is not None:
            yield f"{head.extends} has changed since. Below is that policy as the log has it, with"
            yield "the new rules first."
        if self.reasons:
            yield from ("", "No rule can change:")
            for what, count in self.reasons.most_common():
                yield f"  {_times(count)} {what}"
        if self.left_out:
            yield from ("", f"Left out, because there are too many: {_times(self.left_out)}")

    def _rule_lines(self, section: str) -> Iterator[str]:
        found = [each for drafts, each in self.proposals.items() if drafts[0].section == section]
        written = set[str]()
        for each in sorted(found, key=lambda each: -each.count):
            why = f": {shortened(each.why, _WHY_SHOWN)}" if each.why else ""
            rule = f"; rule {shortened(each.rule, _WORD_SHOWN)}" if each.rule else ""
            yield _comment(f"{_times(each.count)} {each.became.past}{rule}{why}")
            # Two requests may need the same rule, such as the one for an interpreter.
            yield from (line for line in each.lines if line not in written)
            written.update(each.lines)


def _outcome(event: Event, decided: Decision) -> Only | None:
    rule = text(event.payload.get("rule_name"))
    by_policy = rule == DEFAULT_RULE or not rule.startswith(("builtin:", "limits.", "trust."))
    if decided.action is Action.APPROVE and by_policy:
        return Only.ASKED
    if event.type in DENIED_TYPES:
        return Only.DENIED
    if decided.action is Action.AUDIT and event.payload.get("decision") == Action.AUDIT.value:
        return Only.AUDITED
    return None


def _why(event: Event, decided: Decision) -> str:
    """Return the message of the rule, or the recorded reason if another rule decided then."""
    if decided.message and decided.rule == event.payload.get("rule_name"):
        return decided.message
    reason = text(event.payload.get("reason"))
    return "" if reason.startswith("rule ") else reason


_WHAT = {"exec": "path", "signal": "signal_name", "connection": "destination"}


def _what(event: Event) -> str:
    kind = kind_of(event.type)
    what = shortened(text(event.payload.get(_WHAT[kind])) or f"a {kind}", _WORD_SHOWN)
    target = shortened(text(event.payload.get("target_cmd")) or "?", _WORD_SHOWN)
    return f"{what} to {target}" if kind == "signal" else what


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _comment(line: str) -> str:
    return f"# {printable(line)}".rstrip()
