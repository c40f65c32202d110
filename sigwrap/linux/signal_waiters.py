"""Whether a process waits for a signal, as an init or a server may, instead of catching it.

Its mask alone doesn't say. The C library and shells block all signals for a moment, which lasts as
long as the program that they start is asked about; and while a thread is in sigwait(3), what it
waits for is not in its mask.
"""

from __future__ import annotations

from sigwrap.linux import proc_files, procfs
from sigwrap.machine import IS_X86_64, numbers_of

_OF_I386 = {177, 421} if IS_X86_64 else set()  # by int 0x80 there are two
_SIGTIMEDWAIT = numbers_of("rt_sigtimedwait") | _OF_I386
_LOOKED_AT = 1000  # nobody has that many threads or files before the one that is looked for


def handles(pid: int, number: int) -> bool:
    """Or blocks it for now, and then gets it as it would without sigwrap."""
    return procfs.handles(pid, number) or _waits(pid)


def outlives(pid: int, number: int) -> bool:
    """It catches or ignores the signal, or waits for it: it won't die of it."""
    if procfs.catches_or_ignores(pid, number) or _waits(pid):
        return True
    return procfs.blocks(pid, number) and _reads(pid, number)


def _waits(pid: int) -> bool:
    """In sigwait(3) or its like: for what, only its memory says, and one that doesn't wait for this
    signal dies of it as it would without sigwrap."""
    threads = procfs.threads(pid)[:_LOOKED_AT]
    return any(procfs.call_of(pid, tid) in _SIGTIMEDWAIT for tid in threads)


def _reads(pid: int, number: int) -> bool:
    """By a signalfd(2)."""
    try:
        opened = proc_files.names(f"/proc/{pid}/fd")[:_LOOKED_AT]
    except OSError:
        return False
    masks = (procfs.descriptor_field(pid, fd, b"sigmask") for fd in opened)
    return any(mask is not None and int(mask, 16) & 1 << number - 1 for mask in masks)
