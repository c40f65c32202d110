"""What a platform has to offer is what mediators ask for."""

from __future__ import annotations

import errno
from types import SimpleNamespace
from typing import Any, get_args

import pytest

from sigwrap.calls import TABLE, X32_BIT, X86_64, Family
from sigwrap.kernel.seccomp import Notification
from sigwrap.machine import WITHOUT, Capability
from sigwrap.network.handler import SocketCalls
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
    network: type[SocketCalls] | None = None,
    rules: str = "",
    **parts: Any,
) -> Mediation:
    strict = engine(f"{rules}defaults: {{command: deny, signal: deny}}\n")
    facts = SimpleNamespace(
        environment=HostEnvironment({}, {}, ()),
        sandbox=SimpleNamespace(files=None, domain=True),
        launched=SimpleNamespace(waits_through_signals=True),
        sigwrap_pids=frozenset(),
    )
    plan = SimpleNamespace(network=network)
    session = session_of(facts=facts, plan=plan, engine=strict, policy=strict.policy, **parts)
    return Mediation(session, listener)


BASH = Process(pid=77, start_time=1, parent=None, ppid=30, depth=1, comm="bash")


class Answers(Anything):
    """Notes events and answers."""

    def __init__(self) -> None:
        self.happened: list[Any] = []

    def record(self, *event: Any) -> bool:
        self.happened.append(event)
        return True

    def fail(self, _id: int, error: int) -> bool:
        self.happened.append(error)
        return True


def _answered(caller: Process | None, number: int, argument: int = 5, **parts: Any) -> list[Any]:
    answers = Answers()
    processes: Any = SimpleNamespace(of_thread=lambda _tid: caller)
    mediation = _mediation(answers, recorder=answers, processes=processes, **parts)
    mediation.answer(Notification(1, 77, 0, number, X86_64, 0, 5, argument, 0, 0, 0, 0))
    return answers.happened


@pytest.mark.parametrize(
    ("caller", "number", "argument", "reason"),
    [
        # It has left the tree, however that was done.
        (None, 62, 5, "not in this session's process tree"),
        (BASH, 135, 5, "sigwrap does not handle this call"),
    ],
)
def test_what_the_filter_hands_over_and_nobody_can_judge_is_refused_and_recorded(
    caller: Process | None, number: int, argument: int, reason: str
) -> None:
    (event, pid, payload), error = _answered(caller, number, argument)
    assert (event, pid, payload["reason"], error) == ("call_refused", 77, reason, errno.EPERM)
    assert payload["arguments"][:2] == ["0x5", hex(argument)]


def test_a_call_of_another_abi_does_not_exist() -> None:
    (event, _pid, payload), error = _answered(BASH, X32_BIT | 62)
    assert (event, payload) == ("abi_refused", {"syscall_number": 62, "comm": "bash"})
    assert error == errno.ENOSYS


def test_a_request_is_denied_if_sigwrap_itself_fails() -> None:
    broken: Any = SimpleNamespace(pid=77, comm="bash")  # has nothing that a signal's judge reads
    (event, _pid, payload), error = _answered(broken, 62)
    assert (event, payload["answered"], error) == ("mediation_failed", False, errno.EPERM)
    assert payload["error"].startswith("AttributeError: ")


def test_every_effect_is_carried_out_and_every_family_has_its_mediator() -> None:
    audit = "file_rules: [{name: a, paths: [/w], operations: [delete], decision: audit}]\n"
    mediation = _mediation(network=SocketCalls, rules=audit)
    assert set(mediation.performer._handlers) == set(get_args(Effect))
    assert {call.family for call in TABLE} == set(Family)
    assert set(mediation._families) == set(Family) - {Family.NONE}  # which the filter refuses


def test_every_capability_says_what_a_run_is_without_it() -> None:
    assert set(WITHOUT) == set(Capability)
