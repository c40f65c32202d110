"""Send signals by pidfd, read them, and tell what a process would do with one.

A pidfd's process cannot become another one, unlike the process of a pid.

A process may wait for a signal, as an init or a server does, instead of catching it. Its mask alone
does not show that: the C library and shells block all signals while they start a program, and a
thread in sigwait(3) has the signals that it waits for out of its mask.
"""

from __future__ import annotations

import ctypes
import errno
import os
import select
import struct
from collections.abc import Iterable

from sigwrap.bare import NamedTuple, signal
from sigwrap.errors import DOCTOR, NoInterception
from sigwrap.kernel import procfs
from sigwrap.kernel.libc import failure, libc, syscall
from sigwrap.machine import IS_X86_64, NUMBERS, numbers_of

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

_DUMP_CORE = (
    *(signal.SIGQUIT, signal.SIGILL, signal.SIGTRAP, signal.SIGABRT, signal.SIGBUS),
    *(signal.SIGFPE, signal.SIGSEGV, signal.SIGSYS, signal.SIGXCPU, signal.SIGXFSZ),
)

_SFD_CLOEXEC = 0o2000000
_SFD_NONBLOCK = 0o4000
_INFO = struct.Struct("<IiiII108x")

_OF_I386 = {177, 421} if IS_X86_64 else set()  # int 0x80 has two
_SIGTIMEDWAIT = numbers_of("rt_sigtimedwait") | _OF_I386
_LOOKED_AT = 1000  # threads and descriptors at most

_SYS_PIDFD_SEND_SIGNAL = NUMBERS["pidfd_send_signal"]
_SI_QUEUE = -1
_PIDFD_THREAD = os.O_EXCL  # Linux 6.9; without it, a pidfd needs the tid of a process leader
SIGINFO_BYTES = 128
_NEEDS = "Linux 5.3 and, in a container, a seccomp profile that permits pidfd_open(2)"
_SIGINFO = struct.Struct("<iii4xiI104x")  # number, errno, code, pid, uid


def send(pidfd: int, number: int, *, sender_pid: int, sender_uid: int, info: bytes = b"") -> None:
    """Send a signal as `sender_pid`, with SI_QUEUE: the kernel accepts SI_USER only from the
    sender."""
    packed = info or _SIGINFO.pack(number, 0, _SI_QUEUE, sender_pid, sender_uid)
    buffer = ctypes.create_string_buffer(packed, SIGINFO_BYTES)
    syscall("pidfd_send_signal", _SYS_PIDFD_SEND_SIGNAL, pidfd, number, buffer, 0)


def require_pidfds() -> None:
    """Raise NoInterception if there are no pidfds."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as refusal:
        raise NoInterception(
            f"pidfd_open fails: {refusal.strerror}",
            refusal.errno or errno.EPERM,
            f"sigwrap needs {_NEEDS}; {DOCTOR}",
        ) from refusal


def open_thread(tid: int) -> int:
    """Open a pidfd of a thread, or, before Linux 6.9, of the process that it leads."""
    try:
        return os.pidfd_open(tid, _PIDFD_THREAD)
    except OSError:
        return os.pidfd_open(tid)


def pidfd_target(tid: int, fd: int) -> tuple[int, bool] | None:
    """Return the pid or tid of another thread's pidfd, and whether it is for a single thread.

    The number is -1 once the process has ended. None if it is no pidfd, or cannot be read.
    """
    try:
        link = procfs.link(f"/proc/{tid}/fd/{fd}")
    except OSError:
        return None
    if "[pidfd]" not in link or link.startswith("/"):
        return None  # fdinfo of another file may wait for its lock
    info = procfs.contents(f"/proc/{tid}/fdinfo/{fd}") or b""
    if b"\nPid:" not in info:
        return None
    is_for_thread = int(procfs.status_field(info, b"flags"), 8) & _PIDFD_THREAD
    return int(procfs.status_field(info, b"Pid")), bool(is_for_thread)


def has_ended(pidfd: int) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))


class SignalInfo(NamedTuple):
    number: int
    code: int
    sender_pid: int
    sender_uid: int

    @property
    def is_from_terminal(self) -> bool:
        return self.code == SI_KERNEL and self.number in _OF_TERMINALS

    @property
    def is_from_timer(self) -> bool:
        """Return whether it is from the caller's timer, which outlived the exec of sigwrap."""
        return self.code == SI_KERNEL and self.number in _OF_TIMERS

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


def take_signals() -> SignalFd:
    """Take all signals, also those that the caller ignores (nohup, a shell's background job): the
    command may handle them. A blocked signal reaches the descriptor even if it is ignored. A fault
    of our own still ends us."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if it is ignored, the kernel reaps our children
    return SignalFd(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})


def signals_in(pid: int, *sets: bytes) -> frozenset[int]:
    """Return the signals in these sets of a process, as its status file names them."""
    status = procfs.contents(f"/proc/{pid}/status")
    bits = 0 if status is None else _bits(status, *sets)
    return frozenset(number for number in range(1, 65) if bits & 1 << number - 1)


def ignored_signals(pid: int) -> frozenset[int]:
    return signals_in(pid, b"SigIgn")


def catches_or_ignores(pid: int, number: int) -> bool:
    """Return whether a signal cannot end the process; one that it only blocks will end it later."""
    return is_in(pid, number, b"SigCgt", b"SigIgn")


def blocks(tid: int, number: int) -> bool:
    return is_in(tid, number, b"SigBlk")


def is_in(tid: int, number: int, *sets: bytes) -> bool:
    """Return whether the signal is in one of these sets of a thread, as its status file names them.

    `ShdPnd` has the signals that are pending for its process.
    """
    status = procfs.contents(f"/proc/{tid}/status")
    return status is not None and bool(_bits(status, *sets) & 1 << number - 1)


def is_about_to_dump_core(tid: int) -> bool:
    """Return whether a pending signal will end the process with a core dump."""
    status = procfs.contents(f"/proc/{tid}/status")
    if status is None:
        return False
    pending = _bits(status, b"SigPnd", b"ShdPnd") & ~_bits(status, b"SigBlk", b"SigIgn", b"SigCgt")
    return any(pending & 1 << number - 1 for number in _DUMP_CORE)


def breaks_off(tid: int) -> bool | None:
    """Return None if no pending signal can interrupt the thread; True if one is sure to do so.

    A signal for the process may be delivered to another thread: then return False.
    """
    status = procfs.contents(f"/proc/{tid}/status")
    if status is None:
        return None
    unblocked = ~_bits(status, b"SigBlk")
    if _bits(status, b"SigPnd") & unblocked:
        return True
    if _bits(status, b"ShdPnd") & unblocked:
        return int(procfs.status_field(status, b"Threads")) == 1
    return None


def handles(pid: int, number: int) -> bool:
    """Return whether a process catches or awaits the signal, or blocks it for now.

    A process that only blocks it gets it later, as it would without sigwrap.
    """
    is_blocked = blocks(pid, number) and not is_in(pid, number, b"SigIgn")
    return is_blocked or is_in(pid, number, b"SigCgt") or _waits(pid)


def outlives(pid: int, number: int) -> bool:
    """Return whether the signal will not end the process."""
    if catches_or_ignores(pid, number) or _waits(pid):
        return True
    return blocks(pid, number) and _reads(pid, number)


def _bits(status: bytes, *sets: bytes) -> int:
    found = 0
    for name in sets:
        found |= int(procfs.status_field(status, name), 16)
    return found


def _waits(pid: int) -> bool:
    """Return whether a thread is in sigwait(3). Only its memory says for which signal.

    If it waits for another one, this signal ends it as it would without sigwrap.
    """
    threads = procfs.threads(pid)[:_LOOKED_AT]
    return any(procfs.call_of(pid, tid) in _SIGTIMEDWAIT for tid in threads)


def _reads(pid: int, number: int) -> bool:
    """Return whether the process has a signalfd(2) for the signal."""
    try:
        opened = procfs.names(f"/proc/{pid}/fd")[:_LOOKED_AT]
    except OSError:
        return False
    masks = (procfs.descriptor_field(pid, fd, b"sigmask") for fd in opened)
    return any(mask is not None and int(mask, 16) & 1 << number - 1 for mask in masks)
