"""What all measurements share: what is measured, with whom beside it, and how often."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.peers import Peer

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / ".venv" / "bin" / "sigwrap"
BINARY = ROOT / "dist" / "sigwrap"
ZIPAPP = ROOT / "dist" / "sigwrap.pyz"
INTERPRETER = os.path.realpath(sys.executable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    folder: Path
    rounds: int
    is_quick: bool
    say: Callable[[str], None]
    loggers: list[Peer] = field(default_factory=list)
    inits: list[Peer] = field(default_factory=list)

    def amount(self, usual: int, quick: int) -> int:
        return quick if self.is_quick else usual

    def make_folder(self, name: str) -> Path:
        made = self.folder / name
        made.mkdir()
        return made


def sigwrap(*options: str) -> tuple[str, ...]:
    return (str(PACKAGE), *options, "--")


def policy(folder: Path, name: str, rules: str) -> str:
    """The path of a policy that allows everything but what its rules say."""
    path = folder / f"{name}.yaml"
    head = f"version: 1\nname: {name}\ndefaults: {{command: allow, signal: allow}}\n"
    path.write_text(f"{head}command_rules:\n{rules}")
    return str(path)
