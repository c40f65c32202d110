"""What is decided about a signal before and beneath a policy's rules."""

from __future__ import annotations

import itertools
import signal

import pytest

from sigwrap.policy.judge.request import Action, Decision, TargetType, with_implied
from sigwrap.session.effects import SignalTarget
from sigwrap.session.lineage import Process
from sigwrap.signal.facts import CallKind, SignalFacts, noise
from sigwrap.signal.judge import event_payload, judge
from tests.mediate.transcript import engine, nobody_handles


def rules(*lines: str, default: str = "deny") -> str:
    listed = "".join(f"  {line.rstrip()}\n" for line in lines)
    return f"signal_rules:\n{listed}defaults: {{command: deny, signal: {default}}}\n"


SENDER = Process(pid=1, start_time=1, parent=None, ppid=0, depth=1, comm="a")


def facts(*kinds: TargetType, number: int = 15) -> tuple[SignalFacts, SignalTarget]:
    target = SignalTarget(2, 1, "b", with_implied(frozenset(kinds)))
    return SignalFacts(
        SENDER, "kill", number, CallKind.NUMBER, target, 1, (), nobody_handles
    ), target


def test_a_number_that_is_no_signal_is_its_own_name() -> None:
    allowed = Decision(action=Action.ALLOW, rule="r", reason="")
    payload = event_payload(*facts(number=577), allowed)
    assert payload["signal_name"] == "577" and payload["target_type"] == "unknown"


def test_a_rule_on_pids_looks_at_the_target() -> None:
    range_of_pids = "{type: pid_range, min: 2, max: 2}"
    line = f"- {{name: pids, signals: [TERM], target: {range_of_pids}, decision: allow}}"
    assert judge(engine(rules(line)), *facts(TargetType.USER)).decision.rule == "pids"


UNLOGGED = "decision: allow, log: false"
WITHIN = f"- {{name: n, signals: [WINCH], target: session, {UNLOGGED}}}"


def test_noise_is_what_everybody_may_send_everybody_unlogged() -> None:
    for line, unlogged in (
        (f"- {{name: n, signals: ['@ignore'], {UNLOGGED}}}", {17, 23, 28}),
        (f"- {{name: n, signals: [WINCH], {UNLOGGED}}}", {28}),
        ("- {name: n, signals: [WINCH], decision: allow}", set()),
        (WITHIN, set()),
        (f"- {{name: n, signals: [WINCH], handled: true, {UNLOGGED}}}", set()),
        (f"- {{name: n, signals: [TERM], {UNLOGGED}}}", set()),
        ("- {name: n, signals: [WINCH], decision: deny}", set()),
    ):
        assert noise(engine(rules(line)), domain=False) == unlogged


@pytest.mark.parametrize("domain", [False, True])
def test_where_an_attempt_on_sigwrap_ends_the_run_nothing_is_noise(domain: bool) -> None:
    everybody = f"- {{name: n, signals: [WINCH], {UNLOGGED}}}"
    for line, reaction in itertools.product((WITHIN, everybody), ("stop", "kill")):
        policy = f"trust: {{boundary: {reaction}}}\n{rules(line)}"
        assert noise(engine(policy), domain=domain) == set()


def test_behind_a_wall_it_is_enough_that_nobody_outside_may_have_it() -> None:
    for lines, unlogged in (
        ([WITHIN], {28}),
        ([WITHIN, "- {name: d, signals: ['@all'], decision: deny}"], {28}),
        ([WITHIN, "- {name: c, signals: [WINCH], target: children, decision: audit}"], {28}),
        (["- {name: c, signals: [WINCH], target: children, decision: audit}", WITHIN], set()),
        ([WITHIN, "- {name: o, signals: [WINCH], target: user, decision: audit}"], set()),
        ([WITHIN, "- {name: o, signals: [WINCH], decision: approve}"], set()),
        ([WITHIN, "- {name: o, signals: [WINCH], target: parent, decision: deny}"], {28}),
        (
            [
                WITHIN,
                "- {name: o, signals: [WINCH], target: {type: process, pattern: vim}, "
                "decision: absorb}",
            ],
            set(),
        ),
        ([f"- {{name: n, signals: [WINCH], target: self, {UNLOGGED}}}"], set()),
        ([f"- {{name: n, signals: [WINCH], target: user, {UNLOGGED}}}"], set()),
        # The kernel would refuse whoever is outside, and this allows it.
        ([f"- {{name: n, signals: [WINCH], {UNLOGGED}}}"], set()),
        ([WITHIN, "- {name: o, signals: [WINCH], decision: deny, escalate: SIGPOLICY}"], set()),
    ):
        assert noise(engine(rules(*lines)), domain=True) == unlogged


def test_a_rule_above_or_a_default_that_lets_it_out_takes_a_signal_out_of_the_noise() -> None:
    assert noise(engine(rules(WITHIN, default="audit")), domain=True) == set()
    above = "- {name: a, signals: [CHLD], target: self, decision: allow}"
    below = f"- {{name: n, signals: ['@ignore'], target: session, {UNLOGGED}}}"
    assert noise(engine(rules(above, below)), domain=True) == {signal.SIGURG, signal.SIGWINCH}
