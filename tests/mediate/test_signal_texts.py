"""The lines that the sender of a denied signal reads."""

from __future__ import annotations

from sigwrap.policy.judge.request import PROTECTS_SIGWRAP, Action, Decision
from sigwrap.session.lineage import Process
from sigwrap.signal.facts import Denied, DeniedSignals

RULE = Decision(Action.DENY, "agent", "rule agent", "it is the agent")


def sender() -> Process:
    return Process(pid=40, start_time=1, parent=None, ppid=30, depth=1, comm="bash")


def denied(target: int, decision: Decision = RULE) -> Denied:
    return Denied(f"SIGTERM to {target} (node)", target, decision)


def test_a_line_names_the_signal_its_target_the_rule_and_the_policy() -> None:
    assert DeniedSignals("mine").lines(sender(), [denied(7)]) == [
        "sigwrap: denied: SIGTERM to 7 (node): it is the agent (rule agent, policy mine)"
    ]
    everybody = Decision(Action.DENY, "builtin:everybody", "never let through")
    (line,) = DeniedSignals("mine").lines(sender(), [denied(7, everybody)])
    assert "(rule builtin:everybody)" in line


def test_many_denials_are_no_flood() -> None:
    told, one = DeniedSignals("mine"), sender()
    lines = [line for target in range(1000) for line in told.lines(one, [denied(target)])]
    assert len(lines) == 11
    assert "further denials of this process are only in the log" in lines[-1]
    many = [denied(number, RULE._replace(rule=f"r{number}")) for number in range(50)]
    assert len(told.lines(sender(), many)) == 11


def test_only_so_many_senders_are_kept() -> None:
    told, first = DeniedSignals("mine"), sender()
    told.lines(first, [denied(7)])
    for _ in range(300):
        told.lines(sender(), [denied(7)])
    assert len(told.lines(first, [denied(7)])) == 1


def test_sigwraps_own_processes_are_one_target() -> None:
    told, one = DeniedSignals("mine"), sender()
    assert len(told.lines(one, [denied(7, PROTECTS_SIGWRAP)])) == 1
    assert told.lines(one, [denied(8, PROTECTS_SIGWRAP), denied(9, PROTECTS_SIGWRAP)]) == []
    assert len(told.lines(sender(), [denied(8, PROTECTS_SIGWRAP)])) == 1
