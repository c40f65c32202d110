"""Colour, if the terminal's user wants it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Style:
    colour: bool

    @classmethod
    def suited_to(cls, is_terminal: bool, env: Mapping[str, str]) -> Style:
        """Follow https://no-color.org: any non-empty value turns colour off."""
        return cls(colour=is_terminal and not env.get("NO_COLOR") and env.get("TERM") != "dumb")

    def good(self, text: str) -> str:
        return self._paint("32", text)

    def bad(self, text: str) -> str:
        return self._paint("1;31", text)

    def heading(self, text: str) -> str:
        return self._paint("1", text)

    def _paint(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour else text


PLAIN = Style(colour=False)
