"""What a platform has to offer is what mediators ask for."""

from __future__ import annotations

from typing import Any, get_args

from sigwrap.calls import TABLE, Family
from sigwrap.mediate.effects import Effect
from sigwrap.platform import NEEDED_BY, WITHOUT, Capability
from sigwrap.run.mediation import Mediation
from tests.mediate.transcript import engine


class Anything:
    def __getattr__(self, name: str) -> Any:
        return self

    def __call__(self, *_words: Any, **_named: Any) -> Any:
        return self


def test_every_effect_is_carried_out_and_every_family_has_its_mediator() -> None:
    anything: Any = Anything()
    mediation = Mediation(
        listener=anything,
        waits_through_signals=True,
        recorder=anything,
        engine=engine("defaults: {command: deny, signal: deny}\n"),
        processes=anything,
        approvals=anything,
        loop=anything,
        aside=anything,
        sigwrap_pids=frozenset(),
        end_run=anything,
        domain=True,
    )
    assert set(mediation._performer._handlers) == set(get_args(Effect))
    assert set(mediation._families) == set(Family) == {call.family for call in TABLE}


def test_every_capability_says_what_a_run_is_without_it() -> None:
    assert set(WITHOUT) == set(Capability)
    assert set(NEEDED_BY.values()) < set(Capability)
    assert set(NEEDED_BY) < set(get_args(Effect))
