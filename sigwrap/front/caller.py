"""Whoever started sigwrap: the parent of the process that he knows."""

from __future__ import annotations

import os

from sigwrap.linux import procfs
from sigwrap.tuples import NamedTuple


class Caller(NamedTuple):
    pid: int
    pidfd: int  # readable once it has ended
    name: str


def callers_pid(bootloader_pid: int) -> int:
    """0 where that is outside of our pid namespace."""
    outermost = procfs.stat(bootloader_pid or os.getpid())
    return 0 if outermost is None else outermost.ppid


def held_caller(bootloader_pid: int) -> Caller | None:
    """None where there is nobody whose end could be seen."""
    pid = callers_pid(bootloader_pid)
    if not pid:
        return None
    try:
        return Caller(pid, os.pidfd_open(pid), procfs.comm(pid))
    except ProcessLookupError:  # at this moment: we are somebody else's child by now
        return held_caller(bootloader_pid)
