"""Pidfds: they hold a process, so that no other process gets its number meanwhile."""

from __future__ import annotations

import ctypes
import errno
import os
import select
import stat
import struct

from sigwrap.errors import DOCTOR, KernelError, NoInterception
from sigwrap.linux import procfs
from sigwrap.linux.file_state import kind_of
from sigwrap.linux.libc import syscall
from sigwrap.linux.taken import let_go, taken
from sigwrap.machine import NUMBERS

_SYS_PIDFD_SEND_SIGNAL = NUMBERS["pidfd_send_signal"]
_SYS_PIDFD_GETFD = NUMBERS["pidfd_getfd"]
_SI_QUEUE = -1
_PIDFD_THREAD = os.O_EXCL  # Linux 6.9; without it, a thread's tid will not do
SIGINFO_BYTES = 128
_NEEDS = "Linux 5.3 and, in a container, a seccomp profile that permits pidfd_open(2)"
_SIGINFO = struct.Struct("<iii4xiI104x")  # number, errno, code, pid, uid


def send(
    pidfd: int, number: int, *, sender_pid: int, sender_uid: int, flags: int = 0, info: bytes = b""
) -> None:
    """Send a signal as if from the sender. The kernel takes SI_QUEUE for that, but not SI_USER."""
    packed = info or _SIGINFO.pack(number, 0, _SI_QUEUE, sender_pid, sender_uid)
    buffer = ctypes.create_string_buffer(packed, SIGINFO_BYTES)
    syscall("pidfd_send_signal", _SYS_PIDFD_SEND_SIGNAL, pidfd, number, buffer, flags)


def require() -> None:
    """Raise NoInterception if pidfd_open does not work."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as refusal:
        raise NoInterception(
            f"pidfd_open fails: {refusal.strerror}",
            refusal.errno or errno.EPERM,
            f"sigwrap needs {_NEEDS}; {DOCTOR}",
        ) from refusal


def can_take() -> bool:
    """Return whether pidfd_getfd works. Docker's default profile wants CAP_SYS_PTRACE for it."""
    own = os.pidfd_open(os.getpid())
    try:
        os.close(syscall("pidfd_getfd", _SYS_PIDFD_GETFD, own, own, 0))
        return True
    except KernelError:
        return False
    finally:
        os.close(own)


def duplicate(tid: int, fd: int) -> int:
    """Duplicate another thread's descriptor, close-on-exec.

    Raises OSError if closing the duplicate could block.
    """
    return taken(tid, fd, lambda: _duplicate(tid, fd))


def duplicate_socket(tid: int, fd: int) -> int:
    """Duplicate a socket of another thread.

    Raises OSError if the descriptor is no socket any more, and closes it without waiting.
    """
    found = _duplicate(tid, fd)
    if kind_of(b"/proc/self/fd/%d" % found)[0] == stat.S_IFSOCK:
        return found
    let_go(found)
    raise OSError(errno.ENOTSOCK, os.strerror(errno.ENOTSOCK))


def _duplicate(tid: int, fd: int) -> int:
    holder = open_thread(tid)
    try:
        return syscall("pidfd_getfd", _SYS_PIDFD_GETFD, holder, fd, 0)
    finally:
        os.close(holder)


def open_thread(tid: int) -> int:
    """Open a pidfd of a thread. Before Linux 6.9 it is of the process, if the thread leads that."""
    try:
        return os.pidfd_open(tid, _PIDFD_THREAD)
    except OSError:
        return os.pidfd_open(tid)


def target(pidfd: int) -> int | None:
    """Return what our own pidfd stands for; -1 once that has ended, None if it is no pidfd."""
    return procfs.pidfd_target(pidfd)


def target_of(tid: int, fd: int) -> tuple[int, bool] | None:
    """Return what another thread's pidfd stands for, and whether it is of a single thread.

    The pid is -1 once the process has ended. None if it is no pidfd, or cannot be read.
    """
    found = procfs.descriptor_fields(tid, fd, b"Pid", b"flags")
    if found is None:
        return None
    number, flags = found
    return int(number), bool(int(flags, 8) & _PIDFD_THREAD)


def has_ended(pidfd: int) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))
