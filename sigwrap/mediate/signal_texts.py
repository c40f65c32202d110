"""Texts about a signal: the approval request, and the lines for a denied sender.

A denied sender gets one line for each rule and target, and only ten lines in all. Sigwrap's own
processes count as one target.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sigwrap.bare import NamedTuple
from sigwrap.escape import shell_words
from sigwrap.mediate.effects import SignalTarget
from sigwrap.mediate.lineage import Process
from sigwrap.mediate.questions import Question
from sigwrap.mediate.signal_facts import SENDS, SignalFacts
from sigwrap.mediate.wording import denial
from sigwrap.policy.judge.request import PROTECTS_SIGWRAP, Decision
from sigwrap.policy.judge.signals import signal_name

_LINES_EACH = 10
_SENDERS_KEPT = 256
_NO_MORE = "sigwrap: further denials of this process are only in the log (sigwrap report)"


def to_one(facts: SignalFacts, target: SignalTarget) -> str:
    return f"{_aimed(facts)} {_named(target)}"


def request_for(facts: SignalFacts, asked: Sequence[tuple[SignalTarget, Decision]]) -> Question:
    """Make the approval request. An approval for the session covers these very processes only."""
    asked = sorted(asked, key=lambda each: each[0].is_inside)  # outside first: a long list is cut
    targets = "; ".join(_placed(target) for target, _ in asked)
    each_key = ((each.rule, target.pid, target.start_time, target.comm) for target, each in asked)
    decision = asked[0][1]
    return Question(
        kind="signal",
        pid=facts.sender.pid,
        process=facts.sender.comm,
        depth=facts.sender.depth,
        what=f"{_aimed(facts)} {targets}",
        rule=decision.rule,
        message=decision.message,
        key=(
            *("signal", facts.syscall, signal_name(facts.signal)),
            *(str(part) for parts in each_key for part in parts),
        ),
        execs=facts.sender.execs,
    )


def _aimed(facts: SignalFacts) -> str:
    is_sent = facts.how in SENDS
    return f"{signal_name(facts.signal)} to" if is_sent else f"{facts.syscall} aimed at"


def _named(target: SignalTarget) -> str:
    return f"{target.pid} ({shell_words([target.comm])})"


def _placed(target: SignalTarget) -> str:
    where = "" if target.is_inside else ", outside this session"
    return _named(target) + where


class Denied(NamedTuple):
    what: str  # `SIGTERM to 4711 (node)`
    target: object  # equal for the same target only
    decision: Decision


class DeniedSignals:
    """The denials that were printed to each sender."""

    def __init__(self, policy: str) -> None:
        self._policy = policy
        self._told: dict[Process, tuple[set[tuple[str, object]], list[str]]] = {}

    def lines(self, sender: Process, denied: Iterable[Denied]) -> list[str]:
        """Return the new lines for the sender. Members of a group share a line for each rule."""
        if sender not in self._told and len(self._told) >= _SENDERS_KEPT:
            self._told.clear()
        pairs, told = self._told.setdefault(sender, (set(), []))
        by_rule: dict[str, list[Denied]] = {}
        for each in denied:
            rule = each.decision.rule
            pair = rule, None if each.decision == PROTECTS_SIGWRAP else each.target
            if pair not in pairs and len(told) <= _LINES_EACH:
                pairs.add(pair)
                by_rule.setdefault(rule, []).append(each)
        lines = [self._line(rule, those) for rule, those in by_rule.items()]
        fit = max(_LINES_EACH - len(told), 0)
        if len(lines) > fit:
            lines = [*lines[:fit], _NO_MORE]
        told += lines
        return lines

    def _line(self, rule: str, those: list[Denied]) -> str:
        first, more = those[0], len(those) - 1
        decision = first.decision
        why = decision.message or (decision.reason if rule.startswith("builtin:") else "")
        what = f"{first.what} and {more} more" if more else first.what
        return denial(what, rule, self._policy, why)
