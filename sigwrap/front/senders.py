"""Which processes sent a signal to sigwrap, and which one started it.

A process that only sends a signal is gone within a fraction of a millisecond, so it is looked up
before all else. Its name outlives its command line, until its parent has reaped it.
"""

from __future__ import annotations

import os

from sigwrap.bare import NamedTuple
from sigwrap.linux import procfs
from sigwrap.linux.sigfd import SignalInfo
from sigwrap.mediate.masking import masked
from sigwrap.protocols.front import NO_SENDER, Place, Sender

_SHOWN = 1024
_ANCESTORS = 4096  # more than there can be, unless pids are reused meanwhile


class Caller(NamedTuple):
    pid: int
    pidfd: int  # readable once it has ended
    name: str


def callers_pid(bootloader_pid: int) -> int:
    """Return the pid of the process that started sigwrap, 0 if our pid namespace has none."""
    outermost = procfs.stat(bootloader_pid or os.getpid())
    return 0 if outermost is None else outermost.ppid


def held_caller(bootloader_pid: int) -> Caller | None:
    pid = callers_pid(bootloader_pid)
    if not pid:
        return None
    try:
        return Caller(pid, os.pidfd_open(pid), procfs.comm(pid))
    except ProcessLookupError:  # it ended just now, and we have another parent
        return held_caller(bootloader_pid)


def sender_of(info: SignalInfo, *, supervisor: int, bootloader: int) -> Sender:
    pid, uid = info.sender_pid, info.sender_uid
    if info.is_from_terminal or pid == supervisor:  # the supervisor passes keys on
        return NO_SENDER
    if info.is_from_timer:
        return Sender(pid, uid, Place.TIMER, "")
    if pid == 0:
        return Sender(pid, uid, Place.ELSEWHERE, "")
    if pid == bootloader:
        return Sender(pid, uid, Place.OUTER_PROCESS, procfs.comm(pid))
    found = procfs.stat(pid)
    if found is None:
        return Sender(pid, uid, Place.ENDED, "")
    if _is_below(found, supervisor):  # its command line could block a reader: it is its memory
        return Sender(pid, uid, Place.INSIDE, found.comm)
    words = procfs.command_line(pid)[:_SHOWN].split(" ")
    return Sender(pid, uid, Place.OUTSIDE, " ".join(masked(words)) or found.comm)


def _is_below(process: procfs.Stat, ancestor: int) -> bool:
    found: procfs.Stat | None = process
    for _ in range(_ANCESTORS):
        if found is None or found.ppid <= 1:
            return False
        if found.ppid == ancestor:
            return True
        found = procfs.stat(found.ppid)
    return False
