"""Read signals as events, with their sender; no handler interrupts anything."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable

from sigwrap.bare import signal
from sigwrap.linux.libc import failure, libc
from sigwrap.tuples import NamedTuple

SI_KERNEL = 0x80
SI_USER = 0
# `sigwrap killswitch on` sends it by kill(2). Of another signal the kernel would forget who sent it
# and how, once the user's queue of signals is full; of a real-time signal only if it is by kill(2).
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


class SignalInfo(NamedTuple):
    number: int
    code: int
    sender_pid: int
    sender_uid: int

    @property
    def is_by_kill(self) -> bool:
        """Return whether kill(2) or its like sent it: no process can say that for another."""
        return self.code == SI_USER

    @property
    def is_from_terminal(self) -> bool:
        return self.code == SI_KERNEL and self.number in _OF_TERMINALS

    @property
    def is_from_timer(self) -> bool:
        """Return whether a timer of sigwrap's caller sent it: sigwrap sets none."""
        return self.code == SI_KERNEL and self.number in _OF_TIMERS

    @property
    def is_of_a_child(self) -> bool:
        return self.number == signal.SIGCHLD and self.code > 0  # no process can send that

    @property
    def is_our_own(self) -> bool:
        """Return whether the kernel sent it for a call of sigwrap's own, as SIGPIPE or SIGTTIN."""
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
