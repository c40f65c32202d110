"""Whether a wrapped run came out as native ones do. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher

from tests.programs.running import Outcome, Part


@dataclass(frozen=True, slots=True)
class Difference:
    part: str
    natively: str
    wrapped: str

    def __str__(self) -> str:
        return f"{self.part}: natively {self.natively!r}, wrapped {self.wrapped!r}"


def difference(natives: list[Outcome], wrapped: Outcome) -> Difference | None:
    """The first; what natively differs from run to run is compared only in what doesn't."""
    for part in dict.fromkeys(["late", *natives[0], *wrapped]):
        of_natives = [native.get(part, ()) for native in natives]
        found = _difference(part, of_natives, wrapped.get(part, ()))
        if found:
            return found
    return None


def _difference(part: str, natives: list[Part], wrapped: Part) -> Difference | None:
    first = natives[0]
    if all(native == first for native in natives):
        if wrapped == first:
            return None
        for natively, line in zip(first, wrapped, strict=False):
            if natively != line:
                return Difference(part, natively, line)
        shorter = min(len(first), len(wrapped))
        return Difference(part, _line(first, shorter), _line(wrapped, shorter))
    stable = first
    for native in natives[1:]:
        stable = _common(stable, native)
    following = iter(wrapped)
    for line in stable:
        if line not in following:
            return Difference(part, line, "(not there)")
    return None


def _line(part: Part, index: int) -> str:
    return part[index] if index < len(part) else "(nothing more)"


def _common(one: Part, other: Part) -> Part:
    blocks = SequenceMatcher(None, one, other, autojunk=False).get_matching_blocks()
    return tuple(line for block in blocks for line in one[block.a : block.a + block.size])
