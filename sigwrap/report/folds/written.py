"""Files that were written, created, deleted and renamed, by folder: thousands in a few lines.

When there are too many folders, the deepest ones are counted with their parents. In the end, a
folder with many others in it is one line.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sigwrap.events import Payload, text, times

WRITTEN_SHOWN = 20
_FOLDERS_KEPT = 1_000
_DEEPEST = 64
_CHARACTERS_KEPT = 200
_CHANGES = ("create", "write", "rename", "delete")
UNSEEN = "unseen"

_Parts = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    folder: str
    beneath: bool  # also in the folders beneath
    counts: dict[str, int]  # by operation

    @property
    def total(self) -> int:
        return sum(self.counts.values())


@dataclass(slots=True)
class _Folder:
    counts: dict[str, int]
    is_beneath: bool = False

    def add(self, counts: dict[str, int]) -> None:
        for change, count in counts.items():
            self.counts[change] = self.counts.get(change, 0) + count


class WrittenFold:
    def __init__(self) -> None:
        self._folders: dict[_Parts, _Folder] = {}
        self._depth = _DEEPEST
        self.changes: dict[str, int] = {}

    def add(self, payload: Payload) -> None:
        change, count = text(payload.get("operation")), times(payload)
        change = change if change in _CHANGES else UNSEEN
        self.changes[change] = self.changes.get(change, 0) + count
        if change == UNSEEN:
            return
        path = text(payload.get("to")) or text(payload.get("path"))
        parts = tuple(path.split("/")[1:-1])
        self._count(parts, {change: count}, is_beneath=False)
        while len(self._folders) > _FOLDERS_KEPT and self._depth:
            self._depth = min(self._depth, max(map(len, self._folders))) - 1
            folders, self._folders = self._folders, {}
            for each, folder in folders.items():
                self._count(each, folder.counts, is_beneath=folder.is_beneath)

    def _count(self, parts: _Parts, counts: dict[str, int], *, is_beneath: bool) -> None:
        kept = parts[: self._depth]
        folder = self._folders.setdefault(kept, _Folder({}))
        folder.add(counts)
        folder.is_beneath |= is_beneath or len(kept) < len(parts)

    def result(self) -> tuple[Written, ...]:
        """Return the largest first."""
        found = [
            Written(
                folder=f"/{'/'.join(parts)}"[:_CHARACTERS_KEPT],
                beneath=folder.is_beneath,
                counts={each: folder.counts[each] for each in _CHANGES if each in folder.counts},
            )
            for parts, folder in _drawn_together(self._folders).items()
        ]
        return tuple(sorted(found, key=lambda each: (-each.total, each.folder)))


def _drawn_together(folders: dict[_Parts, _Folder]) -> dict[_Parts, _Folder]:
    """Count the folder with the most child folders and all beneath it as one, until few remain."""
    kept = {parts: _Folder(dict(each.counts), each.is_beneath) for parts, each in folders.items()}
    while len(kept) > WRITTEN_SHOWN:
        into = _with_the_most_in_it(kept)
        beneath = [each for each in kept if each[: len(into)] == into]
        whole = _Folder({}, is_beneath=True)
        for each in beneath:
            whole.add(kept.pop(each).counts)
        kept[into] = whole
    return kept


def _with_the_most_in_it(folders: Iterable[_Parts]) -> _Parts:
    """Return the deepest of equals, and no folder whose only child folder has the others."""
    inside: dict[_Parts, int] = {}
    for parts in folders:
        if parts:
            inside[parts[:-1]] = inside.get(parts[:-1], 0) + 1
    return max(inside, key=lambda each: (inside[each] > 1, len(each) > 0, inside[each], len(each)))
