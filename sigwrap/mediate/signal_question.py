"""What somebody is asked about a signal: which call aims which one at whom. A yes for the whole
session is for these very processes, and for no other of their names."""

from __future__ import annotations

from collections.abc import Sequence

from sigwrap.escape import shell_words
from sigwrap.mediate.effects import SignalTarget
from sigwrap.mediate.questions import Question
from sigwrap.mediate.signal_facts import SENDS, SignalFacts
from sigwrap.policy.judge.request import Decision
from sigwrap.policy.judge.signals import signal_name


def to_one(facts: SignalFacts, target: SignalTarget) -> str:
    return f"{_aimed(facts)} {_named(target)}"


def question_about(facts: SignalFacts, asked: Sequence[tuple[SignalTarget, Decision]]) -> Question:
    """Those outside come first: a long list is cut."""
    asked = sorted(asked, key=lambda each: each[0].is_inside)
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
