"""Collections that stay small, however much is added to them."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from sigwrap.events import Event

_set = OrderedDict.__setitem__  # super() takes half the time of an entry

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Latest(OrderedDict[Key, Value]):
    """The entries that were added last."""

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._limit = limit

    def __setitem__(self, key: Key, value: Value) -> None:
        _set(self, key, value)
        if len(self) > self._limit:
            self.popitem(last=False)


class Listed:
    """The first events of a kind, and the number of the others."""

    def __init__(self, limit: int) -> None:
        self.events: list[Event] = []
        self.more = 0
        self._limit = limit

    def add(self, event: Event) -> None:
        if len(self.events) < self._limit:
            self.events.append(event)
        else:
            self.more += 1

    @property
    def count(self) -> int:
        return len(self.events) + self.more


class Tally(Generic[Key]):
    """Counts of the frequent keys: when the table is full, it drops the rarer half."""

    def __init__(self, shown: int, limit: int = 10_000) -> None:
        self._shown = shown
        self._limit = limit
        self._counts: dict[Key, int] = {}
        self._dropped = 0

    def add(self, key: Key, count: int = 1) -> None:
        counts = self._counts
        counts[key] = counts.get(key, 0) + count
        if len(counts) > self._limit:
            ranked = self._ranked()
            self._counts = dict(ranked[: self._limit // 2])
            self._dropped += sum(count for _, count in ranked[self._limit // 2 :])

    @property
    def counts(self) -> tuple[tuple[Key, int], ...]:
        """The most frequent keys; among equals, the first one comes first."""
        return tuple(self._ranked()[: self._shown])

    @property
    def rest(self) -> int:
        return sum(count for _, count in self._ranked()[self._shown :]) + self._dropped

    @property
    def exact(self) -> bool:
        """False once keys were dropped: then the counts are lower bounds."""
        return not self._dropped

    def _ranked(self) -> list[tuple[Key, int]]:
        return sorted(self._counts.items(), key=lambda item: -item[1])
