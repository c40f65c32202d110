"""One program, executed by each of the calls that programs/call.c knows, in one session."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

WAYS = (
    "execve",
    "thread",
    "readonly",
    "spawn",
    "vfork",
    "execveat",
    "dirfd",
    "procfd",
    "devfd",
    "i386",
    "i386at",
)


def calls(compiled: Path, ways: Sequence[str], *words: str) -> str:
    """For a shell: after each way's name comes what it said, and its status."""
    call, line = compiled / "call", shlex.join(words)
    return "\n".join(f"echo way {way}; {call} {way} {line}; echo $?" for way in ways)


def by_way(out: str) -> dict[str, list[str]]:
    """The lines of each."""
    parts = (part.splitlines() for part in out.split("way ")[1:])
    return {way: lines for way, *lines in parts}
