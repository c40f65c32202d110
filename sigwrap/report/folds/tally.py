"""Counts per key in bounded memory, however many different keys there are."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Top(Generic[Key]):
    """`exact` is false where the table overflowed: then the counts are lower bounds."""

    counts: tuple[tuple[Key, int], ...]
    rest: int
    exact: bool


class Tally(Generic[Key]):
    """Keeps the frequent keys: when the table is full, the rarer half is dropped."""

    def __init__(self, limit: int = 10_000) -> None:
        self._limit = limit
        self._counts: dict[Key, int] = {}
        self._dropped = 0

    def add(self, key: Key, count: int = 1) -> None:
        counts = self._counts
        counts[key] = counts.get(key, 0) + count
        if len(counts) > self._limit:
            self._drop_rarer_half()

    def top(self, size: int) -> Top[Key]:
        ranked = self._ranked()
        return Top(
            counts=tuple(ranked[:size]),
            rest=sum(count for _, count in ranked[size:]) + self._dropped,
            exact=not self._dropped,
        )

    def _drop_rarer_half(self) -> None:
        ranked = self._ranked()
        kept = ranked[: self._limit // 2]
        self._dropped += sum(count for _, count in ranked[len(kept) :])
        self._counts = dict(kept)

    def _ranked(self) -> list[tuple[Key, int]]:
        # sorted() is stable: among equals, what came first stays first.
        return sorted(self._counts.items(), key=lambda item: -item[1])
