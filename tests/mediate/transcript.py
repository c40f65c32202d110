"""A mediator's dialogue, written down: facts in, then effects out and replies in.

    play(steps).looks(facts).holds().records("exec_allowed", …).yields(…).ends()

A request that is decided without the kernel, in microseconds.
"""

from __future__ import annotations

import errno
from typing import Any, Protocol

from sigwrap.approve.requests import denial
from sigwrap.events import Payload
from sigwrap.exec.facts import Basis, ExecFacts, Location, Unseen
from sigwrap.exec.judge import ExecMediator
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.request import Program
from sigwrap.policy.judge.rules import Crowd
from sigwrap.policy.language.document import Source
from sigwrap.policy.language.parse import parse_policy
from sigwrap.session.effects import (
    Continue,
    Effect,
    ExecTurn,
    Fail,
    Held,
    Hold,
    LetGo,
    Logged,
    Look,
    Ran,
    ReadBasis,
    Record,
    RecordRepeated,
    SignalTarget,
    Steps,
    Succeed,
    Tell,
    Unrecorded,
    VerifyThenContinue,
)
from sigwrap.session.lineage import Process, WouldFail
from sigwrap.signal.facts import CallKind, SignalFacts

OURS = Location("/project", "root and folder", True)


class Transcript:
    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._reply: Any = None
        self.payload: Payload = {}  # of the last event

    def next(self, reply: Any = None) -> Effect:
        """The next effect, whatever it is; `reply` is what it gets."""
        effect = self._steps.send(self._reply)
        self._reply = reply
        return effect

    def yields(self, *effects: Effect, reply: Any = None) -> Transcript:
        """These, one by one; the last of them gets the reply."""
        for position, effect in enumerate(effects, 1):
            found = self.next(reply if position == len(effects) else None)
            assert found == effect, f"{found} instead of {effect}"
        return self

    def records(self, event: str, *, reply: Logged = Logged.WRITTEN, **payload: Any) -> Transcript:
        found = self.next(reply)
        assert isinstance(found, Record), found
        assert found.event == event, found
        return self._holds(found.payload, payload)

    def counts(
        self,
        event: str,
        key: tuple[object, ...],
        within_s: float,
        *,
        reply: Logged = Logged.WRITTEN,
        **payload: object,
    ) -> Transcript:
        """An event that may be one of many."""
        found = self.next(reply)
        assert isinstance(found, RecordRepeated), found
        assert (found.event, found.key, found.within_s) == (event, key, within_s)
        return self._holds(found.payload, payload)

    def tells(self, *parts: str) -> Transcript:
        """A line on the caller's stderr that has all of these."""
        found = self.next()
        assert isinstance(found, Tell), found
        assert all(part in found.text for part in parts), found.text
        return self

    def reads(
        self,
        content: tuple[str, ...],
        *besides: str,
        location: Location = OURS,
        loading: tuple[str, ...] = (),
        loaded: tuple[str, ...] | None = (),
        environment: str = "variables",
    ) -> Transcript:
        basis = Basis(location, content, loaded, environment)
        return self.yields(ReadBasis(loading, besides), reply=basis)

    def looks(self, reply: object) -> Transcript:
        """Once it is its turn."""
        return self.yields(ExecTurn(), Look(), reply=reply)

    def holds(self, reply: object = Held.YES) -> Transcript:
        return self.yields(ExecTurn(), Hold(), reply=reply)

    def runs(self) -> None:
        """What was asked for, verified."""
        self.yields(VerifyThenContinue(), reply=Ran()).ends()

    def goes_on(self, unrecorded: Unrecorded | None = None) -> None:
        self.yields(Continue(unrecorded)).ends()

    def succeeds(self, unrecorded: Unrecorded | None = None, result: int = 0) -> None:
        self.yields(Succeed(unrecorded, result)).ends()

    def fails(self, error: int, unrecorded: Unrecorded | None = None) -> None:
        self.yields(Fail(error, unrecorded)).ends()

    def is_denied(self, what: str, rule: str, why: str = "", **payload: Any) -> None:
        """An exec, which its caller is told."""
        self.records("exec_denied", **{"rule_name": rule, **payload})
        self.yields(Tell(denial(what, rule, "x", why))).fails(errno.EACCES)

    def is_blocked(self, *told: str, **payload: Any) -> None:
        """A signal, which its sender is told."""
        self.records("signal_blocked", **payload).tells(*told).fails(errno.EPERM)

    def ends(self) -> None:
        try:
            effect = self._steps.send(self._reply)
        except StopIteration:
            return
        raise AssertionError(f"{effect} instead of the end")

    def _holds(self, found: Payload, wanted: dict[str, object]) -> Transcript:
        assert {key: found.get(key) for key in wanted} == wanted
        self.payload = found
        return self


def facts(process: Process, *programs: Program, **different: Any) -> ExecFacts:
    """What an exec is judged by."""
    values: dict[str, Any] = {
        "process": process,
        "syscall": "execve",
        "path": programs[0].path,
        "cwd": "/project",
        "truncated": False,
        "programs": programs,
        "here": programs,
        "readable": True,
        "crowd": Crowd(1, 1),
        "stub_rule": None,
    }
    return ExecFacts(**(values | different))


def nobody_handles(_pid: int, _signal: int) -> bool:
    return False


class Looks(Protocol):
    def mediate(self) -> Steps: ...


def play(steps: Steps) -> Transcript:
    return Transcript(steps)


def play_exec(
    mediator: ExecMediator, process: Process, facts: ExecFacts | Unseen | WouldFail
) -> Transcript:
    """From after the first look."""
    syscall = facts.syscall if isinstance(facts, ExecFacts) else "execve"
    return play(mediator.mediate(process, syscall)).looks(facts)


def play_from(mediator: Looks, facts: object) -> Transcript:
    """From after the look; sigwrap itself traces no target."""
    transcript = play(mediator.mediate()).yields(Look(), reply=facts)
    aim = facts.aim if isinstance(facts, SignalFacts) and facts.kind is CallKind.TRACE else None
    if isinstance(aim, SignalTarget):
        transcript.yields(LetGo(aim.pid), reply=False)
    return transcript


def engine(sections: str) -> Engine:
    """From the sections below `version` and `name` of a policy."""
    source = Source(name="policy.yaml", text=f"version: 1\nname: x\n{sections}")
    return Engine(parse_policy(source, variables={}, find_base=lambda _name, _source: None))
