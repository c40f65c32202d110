"""What a platform has to offer is what mediators ask for."""

from __future__ import annotations

import errno
from types import SimpleNamespace
from typing import Any, get_args

import pytest

from sigwrap.calls import TABLE, X86_64, Family
from sigwrap.kernel.seccomp import Notification
from sigwrap.machine import WITHOUT, Capability
from sigwrap.network.handler import Network
from sigwrap.session.effects import Effect
from sigwrap.session.lineage import Process
from sigwrap.session.mediation import Mediation
from sigwrap.start.command import HostEnvironment
from tests.mediate.transcript import engine
from tests.support.stand_in import Anything, session_of

ANYTHING: Any = Anything()


def _mediation(
    listener: Any = ANYTHING,
    *,
    network: type[Network] | None = None,
    rules: str = "",
    **parts: Any,
) -> Mediation:
    strict = engine(f"{rules}defaults: {{command: deny, signal: deny}}\n")
    facts = SimpleNamespace(
        environment=HostEnvironment({}, {}, ()),
        walls=SimpleNamespace(files=None, domain=True),
        launched=SimpleNamespace(waits_through_signals=True),
        sigwrap_pids=frozenset(),
    )
    plan = SimpleNamespace(network=network)
    session = session_of(facts=facts, plan=plan, engine=strict, policy=strict.policy, **parts)
    return Mediation(session, listener)


BASH = Process(pid=77, start_time=1, parent=None, ppid=30, depth=1, comm="bash")


@pytest.mark.parametrize(
    ("caller", "number", "argument", "reason"),
    [
        (
            None,
            62,
            5,
            "not in this session's process tree",
        ),  # it has left it, however that was done
        (BASH, 135, 5, "sigwrap does not handle this call"),
    ],
)
def test_what_the_filter_hands_over_and_nobody_can_judge_is_refused_and_recorded(
    caller: Process | None, number: int, argument: int, reason: str
) -> None:
    happened: list[Any] = []

    class Recorder(Anything):
        def record(self, event: str, pid: int, payload: dict[str, Any]) -> bool:
            happened.append((event, pid, payload["reason"], payload["arguments"][:2]))
            return True

    class Listener(Anything):
        def fail(self, _id: int, error: int) -> bool:
            happened.append(error)
            return True

    class Processes(Anything):
        def of_thread(self, _tid: int) -> Process | None:
            return caller

    mediation = _mediation(recorder=Recorder(), listener=Listener(), processes=Processes())
    mediation.answer(Notification(1, 77, 0, number, X86_64, 0, 5, argument, 0, 0, 0, 0))
    refused = ("call_refused", 77, reason, ["0x5", hex(argument)])
    assert happened == [refused, errno.EPERM]


def test_every_effect_is_carried_out_and_every_family_has_its_mediator() -> None:
    audit = "file_rules: [{name: a, paths: [/w], operations: [delete], decision: audit}]\n"
    mediation = _mediation(network=Network, rules=audit)
    assert set(mediation.performer._handlers) == set(get_args(Effect))
    assert {call.family for call in TABLE} == set(Family)
    assert set(mediation._families) == set(Family) - {Family.NONE}  # which the filter refuses


def test_every_capability_says_what_a_run_is_without_it() -> None:
    assert set(WITHOUT) == set(Capability)
