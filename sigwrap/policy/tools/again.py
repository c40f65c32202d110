"""Read the requests of events, and decide them again. Equal ones are frequent: decide each once."""

from __future__ import annotations

from collections.abc import Callable

from sigwrap.bare import Generic, TypeVar
from sigwrap.events import CONNECTION_TYPES, EXEC_TYPES, SIGNAL_TYPES, Event, kind_of
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.network import Endpoint
from sigwrap.policy.judge.recorded import (
    command_request,
    connection_request,
    programs_here,
    signal_request,
)
from sigwrap.policy.judge.request import CommandRequest, Decision, SignalRequest

_MOST_KEPT = 1_000
# The fields that make up a request (judge/recorded.py), and those that limits look at.
_FIELDS = (
    *("path", "argv", "cwd", "depth", "truncated", "traced", "programs", "here", "cut"),
    *("elsewhere", "shadows", "siblings", "processes"),
    *("signal", "original_signal", "target_type", "target_types", "target_cmd", "target_pid"),
    *("target_handles", "direction", "protocol", "destination", "address", "port", "names", "own"),
)

Found = TypeVar("Found")
Request = CommandRequest | SignalRequest | Endpoint


def request_of(event: Event) -> Request | None:
    """Return the request that an event decides; None if it decides none."""
    if event.type in EXEC_TYPES:
        return command_request(event.payload)
    if event.type in SIGNAL_TYPES:
        return signal_request(event.payload)
    return connection_request(event.payload) if event.type in CONNECTION_TYPES else None


def decide(engine: Engine, request: Request) -> Decision:
    match request:
        case CommandRequest():
            return engine.decide_command(request)
        case SignalRequest():
            return engine.decide_signal(request)
        case Endpoint():
            return engine.network.decide(request)


def decide_event(engine: Engine, event: Event) -> Decision:
    """Decide as a run does, which judges a wrapped command once the wrapper executes it."""
    request = request_of(event)
    if isinstance(request, CommandRequest):
        return engine.decide_exec(request, programs_here(event.payload, request))
    assert request is not None
    return decide(engine, request)


class Again(Generic[Found]):
    """Cache what `decide` finds, by the request."""

    def __init__(self, decide: Callable[[Event], Found]) -> None:
        self._decide = decide
        self._known: dict[str, Found] = {}

    def decided(self, event: Event) -> Found:
        key = _key(event)
        if key not in self._known:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            self._known[key] = self._decide(event)
        return self._known[key]


def _key(event: Event) -> str:
    """Return a text, because the fields may be of any type."""
    # An ellipsis is in no log: a field that is null is not the same as a missing one.
    return repr((kind_of(event.type), [event.payload.get(each, ...) for each in _FIELDS]))
