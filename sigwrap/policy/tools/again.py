"""Decide recorded requests again. Equal requests are frequent, and each is decided once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from sigwrap.events import CONNECTION_TYPES, EXEC_TYPES, Event

_MOST_KEPT = 1_000
# The fields that make up a request (judge/recorded.py), and those that limits look at.
_OF_AN_EXEC = (
    *("path", "argv", "cwd", "depth", "truncated", "traced", "programs", "here", "cut"),
    *("elsewhere", "shadows", "siblings", "processes"),
)
_OF_A_SIGNAL = (
    *("signal", "original_signal", "target_type", "target_types", "target_cmd", "target_pid"),
    "target_handles",
)
_OF_A_CONNECTION = (
    *("direction", "protocol", "destination", "address", "port", "names", "own", "cut"),
)

Found = TypeVar("Found")


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
    fields: tuple[str, ...] = _OF_AN_EXEC
    if event.type not in EXEC_TYPES:
        fields = _OF_A_CONNECTION if event.type in CONNECTION_TYPES else _OF_A_SIGNAL
    # An ellipsis is in no log: a field that is null is not the same as a missing one.
    return repr((fields[0], [event.payload.get(each, ...) for each in fields]))
