"""Files that were written, created, deleted and renamed, by folder: thousands in a few lines.

When there are too many folders, the deepest ones are counted with their parents. In the end, a
folder with many others in it is one line.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sigwrap.events import Payload, text, times

WRITTEN_SHOWN = 20
_FOLDERS_KEPT = 1_000
_DEEPEST = 64
_CHARACTERS_KEPT = 200
_CHANGES = ("create", "write", "rename", "delete")
UNSEEN = "unseen"

_Parts = tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class Written:
    """The changes in a folder."""

    folder: str = ""
    beneath: bool = False  # also in the folders beneath
    counts: dict[str, int] = field(default_factory=dict)  # by operation

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def add(self, other: Written) -> None:
        for change, count in other.counts.items():
            self.counts[change] = self.counts.get(change, 0) + count
        self.beneath |= other.beneath


class WrittenFold:
    def __init__(self) -> None:
        self._folders: dict[_Parts, Written] = {}
        self._depth = _DEEPEST
        self.changes: dict[str, int] = {}

    def add(self, payload: Payload) -> None:
        change, count = text(payload.get("operation")), times(payload)
        change = change if change in _CHANGES else UNSEEN
        self.changes[change] = self.changes.get(change, 0) + count
        if change == UNSEEN:
            return
        path = text(payload.get("to")) or text(payload.get("path"))
        self._add(tuple(path.split("/")[1:-1]), Written(counts={change: count}))
        while len(self._folders) > _FOLDERS_KEPT and self._depth:
            self._depth = min(self._depth, max(map(len, self._folders))) - 1
            folders, self._folders = self._folders, {}
            for parts, each in folders.items():
                self._add(parts, each)

    def _add(self, parts: _Parts, changes: Written) -> None:
        kept = parts[: self._depth]
        changes.beneath |= len(kept) < len(parts)
        self._folders.setdefault(kept, Written()).add(changes)

    def result(self) -> tuple[Written, ...]:
        """Return the largest first."""
        found = [
            Written(
                folder=f"/{'/'.join(parts)}"[:_CHARACTERS_KEPT],
                beneath=each.beneath,
                counts={name: each.counts[name] for name in _CHANGES if name in each.counts},
            )
            for parts, each in _drawn_together(self._folders).items()
        ]
        return tuple(sorted(found, key=lambda each: (-each.total, each.folder)))


def _drawn_together(folders: dict[_Parts, Written]) -> dict[_Parts, Written]:
    """Count the folder with the most child folders and all beneath it as one, until few remain."""
    kept = dict(folders)
    while len(kept) > WRITTEN_SHOWN:
        into = _with_the_most_in_it(kept)
        whole = Written(beneath=True)
        for each in [each for each in kept if each[: len(into)] == into]:
            whole.add(kept.pop(each))
        kept[into] = whole
    return kept


def _with_the_most_in_it(folders: Iterable[_Parts]) -> _Parts:
    """Return the deepest of equals, and no folder whose only child folder has the others."""
    inside: dict[_Parts, int] = {}
    for parts in folders:
        if parts:
            inside[parts[:-1]] = inside.get(parts[:-1], 0) + 1
    return max(inside, key=lambda each: (inside[each] > 1, len(each) > 0, inside[each], len(each)))
