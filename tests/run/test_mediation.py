"""What a platform has to offer is what mediators ask for."""

from __future__ import annotations

import errno
from typing import Any, get_args

from sigwrap.calls import TABLE, X86_64, Family
from sigwrap.linux.seccomp import Notification
from sigwrap.mediate.effects import Effect
from sigwrap.platform import NEEDED_BY, WITHOUT, Capability
from sigwrap.run.execs.gate import Gate
from sigwrap.run.files import Files
from sigwrap.run.mediation import Mediation
from sigwrap.run.network import Network
from sigwrap.start.command import HostEnvironment
from tests.mediate.transcript import engine


class Anything:
    def __getattr__(self, name: str) -> Any:
        return self

    def __call__(self, *_words: Any, **_named: Any) -> Any:
        return self


def _mediation(**given: Any) -> Mediation:
    anything: Any = Anything()
    parts = ("listener", "recorder", "processes", "approvals", "loop", "aside", "watchers")
    return Mediation(
        **{name: given.get(name, anything) for name in (*parts, "end_run")},
        network=given.get("network"),
        files=given.get("files"),
        waits_through_signals=True,
        engine=engine("defaults: {command: deny, signal: deny}\n"),
        sigwrap_pids=frozenset(),
        domain=True,
        environment=HostEnvironment({}, {}, ()),
        gate=Gate(),
        child_signals_fd=-1,
        on_waited=lambda waited: None,
    )


def test_a_caller_that_is_not_in_the_tree_is_refused_and_recorded() -> None:
    """It has left it, however that was done: nothing that it asks for is judged."""
    happened: list[Any] = []

    class Recorder(Anything):
        def record(self, event: str, pid: int, payload: dict[str, Any]) -> bool:
            happened.append((event, pid, payload["reason"]))
            return True

    class Listener(Anything):
        def fail(self, _id: int, error: int) -> bool:
            happened.append(error)
            return True

    class Nobody(Anything):
        def of_thread(self, _tid: int) -> None: ...

    mediation = _mediation(recorder=Recorder(), listener=Listener(), processes=Nobody())
    mediation.answer(Notification(1, 77, 0, 62, X86_64, 0, 5, 9, 0, 0, 0, 0))
    assert happened == [("call_refused", 77, "not of this session's tree"), errno.EPERM]


def test_every_effect_is_carried_out_and_every_family_has_its_mediator() -> None:
    mediation = _mediation(network=Network, files=Files)
    assert set(mediation._performer._handlers) == set(get_args(Effect))
    assert set(mediation._families) == set(Family) == {call.family for call in TABLE}


def test_every_capability_says_what_a_run_is_without_it() -> None:
    assert set(WITHOUT) == set(Capability)
    assert set(NEEDED_BY.values()) < set(Capability)
    assert set(NEEDED_BY) < set(get_args(Effect))
