"""Agent signals on a loop that keeps its calls: what is logged, when, and what waits."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from sigwrap.agent import AgentSignal
from sigwrap.control import freezing
from sigwrap.control.agent_signals import AgentSignals
from sigwrap.control.freezing import Freezing
from sigwrap.errors import StoreError
from sigwrap.kernel.peer import Peer
from sigwrap.policy.judge.rules import Trust
from sigwrap.session.effects import ExecTurn
from sigwrap.session.processes import ExecTurns
from tests.mediate.transcript import engine
from tests.support.stand_in import session_of


class Anything:
    def __getattr__(self, name: str) -> Any:
        return lambda *_words: None


class EmptyTree(Anything):
    """Stands in for the frozen process tree."""

    def stop_all(self, *, within_s: float) -> bool:
        return True

    def stop_again(self) -> int:
        return 0

    count = go_on = stop_again


class Log(list[str]):
    session_id = "20260101-000000-abcdef"


class Session:
    def __init__(self, trust: str = "log") -> None:
        self.log = Log()
        self.later: list[Callable[[], None]] = []
        self.writes = True
        self.broken = self.is_typed = False
        policy = engine("defaults: {command: allow, signal: allow}\n").policy
        session = session_of(
            mediation=SimpleNamespace(performer=self),
            policy=policy._replace(trust=Trust(boundary=trust)),
            recorder=self,
            ending=SimpleNamespace(run=self),
            loop=self,
            job_control=self,
            command_pid=7,
            approvals=SimpleNamespace(is_typed=lambda _peer: self.is_typed),
            settings=SimpleNamespace(grace_s=10.0),
            front=self,
            diagnostic=SimpleNamespace(tell=self._diagnose, save=self._copy),
        )
        session.exec_turns = self.exec_turns = ExecTurns(session)
        session.freezing = self.freezing = Freezing(session)
        session.agent_signals = self.signals = AgentSignals(session)

    def _diagnose(self) -> bool:
        raise OSError("no diagnosis today")

    def _copy(self) -> str:
        if not self.writes:
            raise StoreError("no room")
        self.log.append("checkpoint")
        return "/copy.db"

    def wake(self, request: Any, _reply: object) -> None:
        self.log.append(request.name)

    forget_stop_key = stop_front_at_key = wake_front = lambda _self: None

    def interrupt(self, source: str) -> None:
        self.log.append(f"interrupt for {source}")

    def record(self, event: str, _pid: int, payload: dict[str, Any]) -> bool:
        words = (payload.get(name) for name in ("signal", "outcome", "held", "released"))
        self.log.append(" ".join([event, *(str(each) for each in words if each is not None)]))
        return self.writes

    def call_in(self, _seconds: float, call: Callable[..., None], *words: Any) -> None:
        self.later.append(partial(call, *words))

    def terminate(self, why: str, *, is_for_budget: bool) -> None:
        self.log.append(f"terminate{' for budget' if is_for_budget else ''}: {why}")

    def kill(self, why: str) -> None:
        self.log.append(f"kill: {why}")

    def tell(self, _text: str) -> None: ...

    def send(self, signal: AgentSignal, reason: str = "") -> list[str]:
        """Return the outcome, and what happened."""
        self.log.clear()
        outcome = self.signals.send(signal, "operator", reason).outcome
        return [outcome.value, *self.log]


@pytest.fixture(autouse=True)
def empty_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(freezing, "Frozen", EmptyTree)


STOP, CONT, INT = AgentSignal.SIGSTOP, AgentSignal.SIGCONT, AgentSignal.SIGINT
KILL, TERM, BUDGET = AgentSignal.SIGKILL, AgentSignal.SIGTERM, AgentSignal.SIGBUDGET


def _request(name: str) -> Any:
    holdings = SimpleNamespace(free_tracer=lambda: None)
    return SimpleNamespace(name=name, process=SimpleNamespace(pid=8), holdings=holdings)


def test_each_is_recorded_before_it_takes_effect() -> None:
    session = Session()
    assert session.send(STOP) == ["delivered", "agent_signal SIGSTOP delivered", "tree_frozen 0"]
    assert session.send(STOP) == ["no-op", "agent_signal SIGSTOP no-op"]
    for name in ("one", "another"):
        session.exec_turns.wait(_request(name), ExecTurn())
    assert session.send(CONT) == [
        "delivered",
        "agent_signal SIGCONT delivered",
        "tree_thawed 2",
        "one",
        "another",
    ]
    assert session.send(TERM, "over") == [
        "delivered",
        "agent_signal SIGTERM delivered",
        "terminate: ended by agent signal SIGTERM from operator: over",
    ]


@pytest.mark.parametrize("how", ["is over", "never ends"])
def test_a_stop_waits_for_the_execs_in_flight_but_not_forever(how: str) -> None:
    session = Session()
    session.exec_turns.begun("an exec")
    assert session.send(STOP) == ["pending", "agent_signal SIGSTOP pending"]
    assert session.exec_turns.is_closed
    assert not session.freezing.is_frozen
    session.log.clear()
    if how == "is over":
        session.exec_turns.ended("an exec")
        assert session.log == []  # this may be in the middle of a request
        session.later.pop()()
    else:
        (timer,) = session.later
        timer()
    assert session.log == ["agent_signal SIGSTOP delivered", "tree_frozen 0"]


def test_a_stop_that_waits_is_cancelled() -> None:
    session = Session()
    session.exec_turns.begun("an exec")
    session.send(STOP)
    assert session.send(CONT) == [
        "delivered",
        "agent_signal SIGCONT delivered",
        "agent_signal SIGSTOP cancelled",
    ]
    assert not session.exec_turns.is_closed


def test_an_interrupt_releases_the_execs_that_waited() -> None:
    session = Session()
    session.exec_turns.begun("an exec")
    assert session.send(INT, "lunch")[0] == "pending"
    assert session.exec_turns.is_closed
    session.later[0]()
    assert session.log[-1] == "interrupt for operator: lunch"
    assert not session.exec_turns.is_closed


def test_a_frozen_tree_is_let_run_to_end_and_frozen_again() -> None:
    session = Session()
    session.send(STOP)
    session.log.clear()
    session.freezing.let_run()
    session.freezing.let_run()
    assert (session.log, session.exec_turns.is_closed) == (["tree_thawed 0"], False)
    assert session.send(STOP)[0] == "no-op"
    assert not session.exec_turns.is_closed
    session.log.clear()
    session.signals.freeze_again()
    assert (session.log, session.exec_turns.is_closed) == (["tree_frozen 0"], True)


def test_without_a_log_nothing_continues_and_a_kill_still_kills() -> None:
    session = Session()
    session.send(STOP)
    session.writes = False
    assert session.send(CONT)[0] == "failed"
    assert session.freezing.is_frozen and session.exec_turns.is_closed
    assert session.send(KILL)[-1].startswith("kill")


def test_a_run_that_is_ending_can_be_killed_once() -> None:
    session = Session()
    session.send(TERM)
    for kill, name in ((AgentSignal.SIGPOLICY, "SIGPOLICY"), (KILL, "SIGKILL")):
        session.signals._has_killed = False
        assert session.send(kill) == [
            "delivered",
            f"agent_signal {name} delivered",
            f"kill: agent signal {name} from operator",
        ]
    assert session.send(KILL) == ["no-op", "agent_signal SIGKILL no-op"]
    assert session.send(STOP) == ["no-op", "agent_signal SIGSTOP no-op"]


def test_a_signal_without_its_reaction_is_only_logged() -> None:
    session = Session(trust="kill")
    session.signals.send(AgentSignal.SIGTRUST, "trust.path_shadow", "a shadow", escalates=False)
    assert session.log == ["agent_signal SIGTRUST delivered"]
    assert session.send(AgentSignal.SIGTRUST) == [
        "delivered",
        "agent_signal SIGTRUST delivered",
        "agent_signal SIGKILL delivered",
        "kill: agent signal SIGTRUST from operator",
    ]


def test_an_error_at_a_stop_kills_and_one_in_a_diagnosis_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = Session()
    assert session.send(AgentSignal.SIGUSR1) == [
        "failed",
        "agent_signal SIGUSR1 delivered",
        "agent_signal SIGUSR1 failed",
    ]
    assert session.send(AgentSignal.SIGUSR2)[-1] == "checkpoint"

    def fail(_self: object, **_named: float) -> bool:
        raise OSError("no more")

    monkeypatch.setattr(EmptyTree, "stop_all", fail)
    assert session.send(STOP)[-1] == (
        "kill: internal error of sigwrap at SIGSTOP: OSError: no more"
    )


def test_requests_through_the_control_socket() -> None:
    session = Session()
    peer = Peer(812, 1000, "sigwrap signal", "", False)

    def ask(signal: str, *, is_typed: bool = False) -> dict[str, Any]:
        request = {"do": "signal", "signal": signal, "reason": "lunch"}
        session.is_typed = is_typed
        return session.signals.on_request(request, peer)

    assert ask("stop", is_typed=True)["outcome"] == "delivered"
    assert ask("cont", is_typed=True)["error"] == "typed"
    assert session.freezing.is_frozen
    assert ask("cont")["state"] == "RUNNING"
    assert ask("sigstopp")["error"] == "unknown-signal"
    assert session.signals.on_request({"do": "signal"}, peer)["ok"] is False
    of_first = {"do": "signal-outcome", "sequence": 1}
    assert session.signals.on_request(of_first, peer)["signal"] == "SIGSTOP"
    of_none = {"do": "signal-outcome", "sequence": 77}
    assert session.signals.on_request(of_none, peer)["ok"] is False
    assert ask("term")["outcome"] == "delivered"
    assert session.log[-1] == (
        "terminate: ended by agent signal SIGTERM from uid 1000, pid 812: lunch"
    )
