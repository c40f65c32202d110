"""A recorded request is decided once, however often it was made, and no other for it."""

from __future__ import annotations

from typing import Any

import pytest

from sigwrap.events import Event
from sigwrap.policy.judge.recorded import command_request, crowd, programs_here, signal_request
from sigwrap.policy.tools.again import Again, _key


def event(kind: str, payload: dict[str, Any], seq: int = 1) -> Event:
    return Event(seq=seq, time_ns=seq, type=kind, pid=seq, payload=payload, hash="")


def asked(*events: Event) -> list[int]:
    """The numbers of those that were decided."""
    decided: list[int] = []

    def decide(event: Event) -> int:
        decided.append(event.seq)
        return event.seq

    again = Again(decide)
    for each in events:
        again.decided(each)
    return decided


EXEC = {"path": "/usr/bin/git", "argv": ["git", "push"], "cwd": "/", "depth": 1}
SIGNAL = {"signal": 15, "target_types": ["user"], "target_cmd": "node", "target_pid": 7}


def test_an_equal_request_is_not_decided_again() -> None:
    execs = [event("exec_denied", {**EXEC, "rule_name": str(seq)}, seq) for seq in (1, 2, 3)]
    signals = [event("signal_blocked", {**SIGNAL, "source_pid": seq}, seq) for seq in (4, 5)]
    assert asked(*execs, *signals) == [1, 4]


@pytest.mark.parametrize(
    ("kind", "known", "other"),
    [
        ("exec_allowed", EXEC, {"argv": ["git", "pull"]}),
        ("exec_allowed", EXEC, {"depth": "1"}),
        ("exec_allowed", EXEC, {"programs": [{"sha256": "00"}]}),
        ("signal_sent", SIGNAL, {"target_pid": 8}),
        ("signal_sent", SIGNAL, {"target_handles": None}),
    ],
)
def test_another_field_makes_another_request(
    kind: str, known: dict[str, Any], other: dict[str, Any]
) -> None:
    assert asked(event(kind, known, 1), event(kind, {**known, **other}, 2)) == [1, 2]


class _Read(dict[str, Any]):
    """Record which fields were read."""

    def __init__(self, payload: dict[str, Any]) -> None:
        super().__init__(payload)
        self.names: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.names.add(name)
        return super().get(name, default)

    def __contains__(self, name: object) -> bool:
        self.names.add(str(name))
        return super().__contains__(name)


def test_every_field_of_a_request_is_in_its_key() -> None:
    an_exec, a_signal = _Read({}), _Read({})
    programs_here(an_exec, command_request(an_exec))
    crowd(an_exec)
    signal_request(a_signal)
    for kind, read in (("exec_denied", an_exec), ("signal_sent", a_signal)):
        told_apart = _Read({})
        _key(event(kind, told_apart))
        assert read.names <= told_apart.names


def test_the_cache_is_bounded() -> None:
    events = [event("exec_allowed", {"path": str(seq)}, seq) for seq in range(5_000)]
    again = Again(lambda event: event.seq)
    assert [again.decided(each) for each in events] == list(range(5_000))
    assert len(again._known) <= 1_000
