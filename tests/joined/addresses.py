"""A session that commands join: how they do, and its address, as the kernel shows it."""

from __future__ import annotations

import json
import os
from pathlib import Path

from sigwrap.join.fork_server import address
from tests.support.harness import Sigwrap

JOIN = ("--join-name", "agent", "--policy", "agent-observe")
_LISTENS = "00010000"  # its flags


def sessions(subject: Sigwrap) -> int:
    """How many there have been."""
    return len(json.loads(subject.run("sessions", "--json").stdout)["sessions"])


def at(subject: Sigwrap, name: str = "agent") -> str:
    uid = os.geteuid() if subject.user is None else subject.user
    return address(str(subject.store), name, uid).replace(b"\0", b"@").decode()


def is_listened_at(shown: str) -> bool:
    lines = Path("/proc/net/unix").read_text(errors="replace").splitlines()
    return any(line.endswith(f" {shown}") and f" {_LISTENS} " in line for line in lines)
