from __future__ import annotations

import pytest

from sigwrap.agent import AgentSignal
from sigwrap.agent.signals import EFFECTS, FOLLOWS, Effect, escalations
from sigwrap.policy.judge.rules import LoopWatch, Trust, Watch
from sigwrap.policy.language.schema import REACTIONS


def effects(watch: Watch, trust: Trust) -> dict[AgentSignal, Effect]:
    """Return the effect of each signal, including that of the signal that follows it."""
    escalated = escalations(watch, trust)
    return {signal: EFFECTS[escalated.get(signal, signal)] for signal in AgentSignal}


LOOP = LoopWatch(same_exec=25, within_s=60, action="log")


def test_every_reaction_of_a_policy_is_known() -> None:
    assert tuple(FOLLOWS) == REACTIONS


def test_every_signal_has_an_effect() -> None:
    assert list(EFFECTS) == list(AgentSignal)


def test_by_default_a_watcher_only_records() -> None:
    for watch in (Watch(), Watch(loop=LOOP)):
        assert escalations(watch, Trust()) == {
            AgentSignal.SIGPOLICY: AgentSignal.SIGKILL,
            AgentSignal.SIGBUDGET: AgentSignal.SIGTERM,
        }
        came = effects(watch, Trust())
        assert {each.name for each in came if came[each] is Effect.RECORD} == {
            *("SIGTRUST", "SIGLOOP", "SIGDRIFT")
        }
        assert came[AgentSignal.SIGPOLICY] is Effect.KILL
        assert came[AgentSignal.SIGBUDGET] is Effect.TERMINATE


@pytest.mark.parametrize(
    ("watch", "trust", "signal"),
    [
        (Watch(loop=LOOP._replace(action="stop")), Trust(), AgentSignal.SIGLOOP),
        (Watch(drift="stop"), Trust(), AgentSignal.SIGDRIFT),
        (Watch(), Trust(boundary="stop"), AgentSignal.SIGTRUST),
    ],
)
def test_each_signal_has_its_own_reaction(watch: Watch, trust: Trust, signal: AgentSignal) -> None:
    before = effects(Watch(), Trust())
    assert effects(watch, trust) == {**before, signal: Effect.STOP}
    assert escalations(watch, trust)[signal] is AgentSignal.SIGSTOP


def test_the_reaction_kill() -> None:
    came = effects(Watch(drift="kill"), Trust(boundary="kill"))
    assert came[AgentSignal.SIGDRIFT] is came[AgentSignal.SIGTRUST] is Effect.KILL


def test_a_signal_that_escalates_has_no_effect_of_its_own() -> None:
    """Its effect would come twice."""
    everything = Watch(loop=LOOP._replace(action="kill"), drift="kill")
    for signal in escalations(everything, Trust(boundary="kill")):
        assert EFFECTS[signal] is Effect.RECORD
