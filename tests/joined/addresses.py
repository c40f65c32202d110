"""The address of a session that commands join, as the kernel shows it."""

from __future__ import annotations

import os
from pathlib import Path

from sigwrap.protocols.joined import address
from tests.support.harness import Sigwrap

_LISTENS = "00010000"  # its flags


def at(subject: Sigwrap, name: str = "agent") -> str:
    uid = os.geteuid() if subject.user is None else subject.user
    return address(str(subject.store), name, uid).replace(b"\0", b"@").decode()


def is_listened_at(shown: str) -> bool:
    lines = Path("/proc/net/unix").read_text(errors="replace").splitlines()
    return any(line.endswith(f" {shown}") and f" {_LISTENS} " in line for line in lines)
