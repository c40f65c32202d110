"""Signals that are read instead of caught, by sigwrap and by other processes.

A process may wait for a signal, as an init or a server does, instead of catching it. Its mask alone
does not show that: the C library and shells block all signals while they start a program, and a
thread in sigwait(3) has the signals that it waits for out of its mask.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable

from sigwrap.bare import NamedTuple, signal
from sigwrap.kernel import proc_files, procfs
from sigwrap.kernel.libc import failure, libc
from sigwrap.machine import IS_X86_64, numbers_of

SI_KERNEL = 0x80
SI_USER = 0
# `sigwrap killswitch on` sends it as kill(2) does. Once the user's signal queue is full, the kernel
# drops the sender of a standard signal, and of a real-time signal only if it came by kill(2).
KILL_SWITCH_SIGNAL = signal.SIGRTMIN + 9

_OF_TERMINALS = frozenset(
    {
        *(signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGHUP),
        *(signal.SIGCONT, signal.SIGWINCH),
    }
)
# An itimer outlives exec (`alarm 9; exec sigwrap …`), but not the fork to the command.
_OF_TIMERS = frozenset({signal.SIGALRM, signal.SIGVTALRM, signal.SIGPROF})

_SFD_CLOEXEC = 0o2000000
_SFD_NONBLOCK = 0o4000
_INFO = struct.Struct("<IiiII108x")

_OF_I386 = {177, 421} if IS_X86_64 else set()  # int 0x80 has two
_SIGTIMEDWAIT = numbers_of("rt_sigtimedwait") | _OF_I386
_LOOKED_AT = 1000  # threads and descriptors at most


class SignalInfo(NamedTuple):
    number: int
    code: int
    sender_pid: int
    sender_uid: int

    @property
    def is_by_kill(self) -> bool:
        """Return whether kill(2) or the like sent it. No process can forge that for another."""
        return self.code == SI_USER

    @property
    def is_from_terminal(self) -> bool:
        return self.code == SI_KERNEL and self.number in _OF_TERMINALS

    @property
    def is_from_timer(self) -> bool:
        """Return whether it is from the caller's timer, which outlived the exec of sigwrap."""
        return self.code == SI_KERNEL and self.number in _OF_TIMERS

    @property
    def is_of_a_child(self) -> bool:
        return self.number == signal.SIGCHLD and self.code > 0  # no process can send that code

    @property
    def is_our_own(self) -> bool:
        """Return whether sigwrap caused it, as by a read of the terminal or a write to a pipe."""
        if self.code == SI_KERNEL:
            return not (self.is_from_terminal or self.is_from_timer)
        return self.sender_pid == os.getpid()


class SignalFd:
    """Blocks the signals for the calling thread and reads them from `fd`."""

    def __init__(self, signals: Iterable[int]) -> None:
        wanted = frozenset(signals)
        signal.pthread_sigmask(signal.SIG_BLOCK, wanted)
        mask = (ctypes.c_ulong * 16)()
        libc.sigemptyset(mask)
        for number in wanted:
            libc.sigaddset(mask, number)
        self.fd: int = libc.signalfd(-1, mask, _SFD_CLOEXEC | _SFD_NONBLOCK)
        if self.fd < 0:
            raise failure("signalfd")

    def read(self) -> list[SignalInfo]:
        try:
            data = os.read(self.fd, 32 * _INFO.size)
        except BlockingIOError:
            return []
        return [
            SignalInfo(number, code, pid, uid)
            for number, _errno, code, pid, uid in _INFO.iter_unpack(data)
        ]

    def close(self) -> None:
        os.close(self.fd)


def handles(pid: int, number: int) -> bool:
    """Return whether a process catches, ignores or awaits the signal, or blocks it for now.

    A process that only blocks it gets it later, as it would without sigwrap.
    """
    return procfs.handles(pid, number) or _waits(pid)


def outlives(pid: int, number: int) -> bool:
    """Return whether the signal will not end the process."""
    if procfs.catches_or_ignores(pid, number) or _waits(pid):
        return True
    return procfs.blocks(pid, number) and _reads(pid, number)


def _waits(pid: int) -> bool:
    """Return whether a thread is in sigwait(3). Only its memory says for which signal.

    If it waits for another one, this signal ends it as it would without sigwrap.
    """
    threads = procfs.threads(pid)[:_LOOKED_AT]
    return any(procfs.call_of(pid, tid) in _SIGTIMEDWAIT for tid in threads)


def _reads(pid: int, number: int) -> bool:
    """Return whether the process has a signalfd(2) for the signal."""
    try:
        opened = proc_files.names(f"/proc/{pid}/fd")[:_LOOKED_AT]
    except OSError:
        return False
    masks = (procfs.descriptor_field(pid, fd, b"sigmask") for fd in opened)
    return any(mask is not None and int(mask, 16) & 1 << number - 1 for mask in masks)
