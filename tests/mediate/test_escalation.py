"""A rule with `escalate` says so with the event of its decision, whatever that is; and those who
watch are told of each exec that goes on."""

from __future__ import annotations

from typing import Any

from sigwrap.approve.requests import Answer
from sigwrap.exec.facts import Basis
from sigwrap.exec.judge import ExecMediator
from sigwrap.policy.judge.request import Program, TargetType, with_implied
from sigwrap.session.effects import (
    Ask,
    ContinueWatched,
    Effect,
    Escalation,
    ExecTurn,
    Held,
    Hold,
    Look,
    Prepare,
    Prepared,
    PrepareStubCommand,
    ReadBasis,
    Record,
    RecordRepeated,
    Replace,
    Restarted,
    SignalTarget,
    TellWatchers,
    VerifyThenContinue,
)
from sigwrap.session.lineage import Process
from sigwrap.signal.facts import CallKind, SignalFacts, TargetGroup
from sigwrap.signal.judge import SignalMediator
from tests.mediate.transcript import OURS, engine, facts, nobody_handles

RULES = """
command_rules:
  - {name: no, commands: [no], decision: deny, escalate: SIGPOLICY}
  - {name: yes, commands: ["yes"], decision: allow, escalate: SIGPOLICY}
  - {name: look, commands: [look], decision: audit, escalate: SIGPOLICY}
  - {name: ask, commands: [ask], decision: approve, escalate: SIGPOLICY}
  - {name: instead, commands: [was], decision: redirect, escalate: SIGPOLICY,
     redirect_to: {command: /opt/good}}
  - {name: calm, commands: ["*"], decision: allow}
signal_rules:
  - {name: no, signals: [TERM], decision: deny, escalate: SIGPOLICY}
  - {name: own, signals: [URG], target: self, decision: allow, escalate: SIGPOLICY}
  - {name: swallow, signals: [HUP], decision: absorb, escalate: SIGPOLICY}
  - {name: calm, signals: ["@all"], decision: allow}
defaults: {command: deny, signal: deny}
"""
BASH = Process(pid=40, start_time=1, parent=None, ppid=30, depth=1, comm="bash")
CHILD = SignalTarget(50, 5, "sleep", with_implied({TargetType.CHILDREN}))
ITSELF = SignalTarget(40, 1, "bash", with_implied({TargetType.SELF}))
NO = Answer(granted=False, by="the terminal", message="", reason="denied")
REPLIES: dict[type, Any] = {
    Record: True,
    RecordRepeated: True,
    Hold: Held.YES,
    ReadBasis: Basis(OURS, ("",)),
    Ask: NO,
    Prepare: Prepared("/opt/good", ("good",), readable=True),
    PrepareStubCommand: Prepared("/opt/good", ("good",), readable=True),
    Replace: Restarted(),
}


def _effects(steps: Any, **replies: Any) -> list[Effect]:
    found, reply = list[Effect](), None
    try:
        while True:
            effect = steps.send(reply)
            found.append(effect)
            reply = replies.get(type(effect).__name__, REPLIES.get(type(effect)))
    except StopIteration:
        return found


def _exec(name: str, *, is_watched: bool = False, stub: str | None = None, **replies: Any) -> Any:
    program = Program(f"/usr/bin/{name}", name, (name, "--token=abcdefgh"))
    asked = facts(BASH, program, stub_rule=stub)
    mediator = ExecMediator(engine(RULES), is_watched=is_watched)
    return _effects(mediator.mediate(BASH, "execve"), Look=asked, **replies)


def _escalations(effects: list[Effect]) -> list[Escalation]:
    recorded = (each for each in effects if isinstance(each, Record | RecordRepeated))
    return [each.escalation for each in recorded if each.escalation is not None]


def test_whatever_the_rule_decides_it_escalates_once_and_other_rules_dont() -> None:
    for name, rule in (
        ("no", "no"),
        ("yes", "yes"),
        ("look", "look"),
        ("ask", "ask"),
        ("was", "instead"),
    ):
        what = f"{name} '--token=***'"
        assert _escalations(_exec(name)) == [Escalation(rule, what)]
    assert [each.rule for each in _escalations(_exec("yes", Hold=Held.NO))] == ["yes"]
    assert _escalations(_exec("other")) == []


def _signal(number: int, aim: Any) -> list[Escalation]:
    sent = SignalFacts(BASH, "kill", number, CallKind.NUMBER, aim, 4711, (), nobody_handles)
    return _escalations(_effects(SignalMediator(engine(RULES), domain=False).mediate(), Look=sent))


def test_a_signal_rule_escalates_too_for_each_member_of_a_group() -> None:
    for number, rule in ((15, "no"), (1, "swallow")):
        what = "to sleep (50) by bash (40), kill"
        [found] = _signal(number, CHILD)
        assert found.rule == rule
        assert found.what.endswith(what)
    assert [each.rule for each in _signal(23, ITSELF)] == ["own"]
    other = CHILD._replace(pid=51)
    assert [each.rule for each in _signal(15, TargetGroup((CHILD, other)))] == ["no", "no"]
    assert _signal(10, TargetGroup((CHILD, other))) == []


# Who watches


def _told(effects: list[Effect]) -> list[tuple[bool, bool]]:
    return [(each.traced, each.is_replaced) for each in effects if isinstance(each, TellWatchers)]


def test_watchers_are_told_of_what_goes_on_before_it_does() -> None:
    effects = _exec("other", is_watched=True)
    kinds = [type(each) for each in effects]
    assert kinds == [ExecTurn, Look, ExecTurn, Hold, Record, TellWatchers, VerifyThenContinue]
    assert _told(effects) == [(False, False)]
    watched = _exec("other", is_watched=True, Hold=Held.NO)
    assert [type(each) for each in watched][-2:] == [TellWatchers, ContinueWatched]
    assert _told(watched) == [(True, False)]
    assert _told(_exec("was", is_watched=True)) == [(False, True)]
    assert _told(_exec("good", is_watched=True, stub="instead")) == []  # its stub was told of


def test_of_what_does_not_go_on_nobody_is_told() -> None:
    assert _told(_exec("no", is_watched=True)) == []
    assert _told(_exec("ask", is_watched=True)) == []
    assert _told(_exec("other", is_watched=True, Record=False)) == []
    assert _told(_exec("other")) == []
