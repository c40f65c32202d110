"""Who sent a signal, as far as that can still be seen.

A process that only sends is gone within a fraction of a millisecond, so this is looked at before
all else. Its name outlives its command line, until its parent has waited for it.
"""

from __future__ import annotations

from sigwrap.linux import procfs
from sigwrap.linux.sigfd import SignalInfo
from sigwrap.mediate.masking import masked
from sigwrap.protocols.front import NOBODY, Place, Sender

_SHOWN = 1024
_ANCESTORS = 4096  # more than there can be, but for numbers that are used again meanwhile


def sender_of(info: SignalInfo, *, supervisor: int, bootloader: int) -> Sender:
    pid, uid = info.sender_pid, info.sender_uid
    if info.is_from_terminal or pid == supervisor:  # which hands on the keys it gets
        return NOBODY
    if info.is_from_timer:
        return Sender(pid, uid, Place.TIMER, "")
    if pid == 0:
        return Sender(pid, uid, Place.ELSEWHERE, "")
    if pid == bootloader:
        return Sender(pid, uid, Place.OUTER_PROCESS, procfs.comm(pid))
    found = procfs.stat(pid)
    if found is None:
        return Sender(pid, uid, Place.ENDED, "")
    if _is_below(found, supervisor):  # its command line is memory that it may never hand out
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
