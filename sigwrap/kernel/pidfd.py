"""Signal a process by a pidfd, and see its end: its pid cannot become another process's."""

from __future__ import annotations

import _thread
import ctypes
import errno
import os
import select
import stat
import struct
from collections.abc import Callable

from sigwrap.bare import deque, socket, suppress
from sigwrap.errors import DOCTOR, KernelError, NoInterception
from sigwrap.kernel import proc_files, procfs
from sigwrap.kernel.file_state import is_on_local_device, kind_of
from sigwrap.kernel.libc import syscall
from sigwrap.kernel.paths import told_link
from sigwrap.machine import NUMBERS

_SYS_PIDFD_SEND_SIGNAL = NUMBERS["pidfd_send_signal"]
_SYS_PIDFD_GETFD = NUMBERS["pidfd_getfd"]
_SI_QUEUE = -1
_PIDFD_THREAD = os.O_EXCL  # Linux 6.9; without it, a pidfd needs the tid of a process leader
SIGINFO_BYTES = 128
_NEEDS = "Linux 5.3 and, in a container, a seccomp profile that permits pidfd_open(2)"
_SIGINFO = struct.Struct("<iii4xiI104x")  # number, errno, code, pid, uid


def send(
    pidfd: int, number: int, *, sender_pid: int, sender_uid: int, flags: int = 0, info: bytes = b""
) -> None:
    """Send a signal as `sender_pid`, with SI_QUEUE: the kernel accepts SI_USER only from the
    sender."""
    packed = info or _SIGINFO.pack(number, 0, _SI_QUEUE, sender_pid, sender_uid)
    buffer = ctypes.create_string_buffer(packed, SIGINFO_BYTES)
    syscall("pidfd_send_signal", _SYS_PIDFD_SEND_SIGNAL, pidfd, number, buffer, flags)


def require() -> None:
    """Raise NoInterception if there are no pidfds."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except OSError as refusal:
        raise NoInterception(
            f"pidfd_open fails: {refusal.strerror}",
            refusal.errno or errno.EPERM,
            f"sigwrap needs {_NEEDS}; {DOCTOR}",
        ) from refusal


def can_take() -> bool:
    """Return whether pidfd_getfd works: Docker's default profile requires CAP_SYS_PTRACE for it."""
    own = os.pidfd_open(os.getpid())
    try:
        os.close(syscall("pidfd_getfd", _SYS_PIDFD_GETFD, own, own, 0))
        return True
    except KernelError:
        return False
    finally:
        os.close(own)


def duplicate(tid: int, fd: int) -> int:
    """Duplicate another thread's descriptor, close-on-exec. Raises OSError if a close may wait."""
    return taken(tid, fd, lambda: _duplicate(tid, fd))


def duplicate_socket(tid: int, fd: int) -> int:
    """Duplicate a descriptor that the caller has checked to be a socket. Raises OSError if another
    thread has replaced it since."""
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
    """Open a pidfd of a thread, or, before Linux 6.9, of the process that it leads."""
    try:
        return os.pidfd_open(tid, _PIDFD_THREAD)
    except OSError:
        return os.pidfd_open(tid)


def target(pidfd: int) -> int | None:
    """Return the pid or tid of a pidfd; -1 if it is gone, None if it is no pidfd."""
    return procfs.pidfd_target(pidfd)


def target_of(tid: int, fd: int) -> tuple[int, bool] | None:
    """Return the pid or tid of another thread's pidfd, and whether it is for a single thread.

    The number is -1 once the process has ended. None if it is no pidfd, or cannot be read.
    """
    try:
        link = proc_files.link(f"/proc/{tid}/fd/{fd}")
    except OSError:
        return None
    if "[pidfd]" not in link or link.startswith("/"):
        return None  # fdinfo of another file may wait for its lock
    found = procfs.descriptor_fields(tid, fd, b"Pid", b"flags")
    if found is None:
        return None
    number, flags = found
    return int(number), bool(int(flags, 8) & _PIDFD_THREAD)


def has_ended(pidfd: int) -> bool:
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))


# Duplicates of other processes' descriptors, and how to close them.

_SO_PASSRIGHTS = 83
_MOST_CLOSERS = 16
_LOCAL_MAJORS = frozenset({1, *range(136, 144)})  # memory devices, pseudo-terminals


class _Closers:
    """Threads that close descriptors; no request waits for them."""

    def __init__(self) -> None:
        self._lock = _thread.allocate_lock()
        self._waiting: deque[int] = deque()
        self.threads = 0

    @property
    def are_all_busy(self) -> bool:
        return self.threads >= _MOST_CLOSERS

    def close(self, fd: int) -> None:
        with self._lock:
            self._waiting.append(fd)
            if not self.are_all_busy:
                with suppress(RuntimeError):  # no thread can start: a running one closes it
                    _thread.start_new_thread(self._run, ())
                    self.threads += 1

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self.threads -= 1
                    return
                fd = self._waiting.popleft()
            with suppress(OSError):
                os.close(fd)


_closers = _Closers()


def could_stall(pid: int, holder: int, fd: int) -> bool:
    """Return whether a close could block. `holder` has it open, on a mount that `pid` sees."""
    try:
        path = f"/proc/{holder}/fd/{fd}"
        if kind_of(path.encode())[0] != stat.S_IFREG:
            return False
        is_nowhere = not (told_link(path) or "/").startswith("/")  # a pidfd, for example
        return not is_nowhere and not is_on_local_device(pid, holder, fd)
    except FileNotFoundError:
        return False  # the duplication fails with the right errno
    except OSError:
        return True


def taken(pid: int, fd: int, take: Callable[[], int]) -> int:
    """Return the duplicate that `take` makes of `pid`'s descriptor `fd`. OSError if none may be
    made."""
    if could_stall(pid, pid, fd):
        raise PermissionError(errno.EPERM, "its file system may be slow to answer")
    if _closers.are_all_busy and not _closes_at_once(b"/proc/%d/fd/%d" % (pid, fd)):
        raise PermissionError(errno.EPERM, "too many descriptors are still being closed")
    found = take()
    if could_stall(pid, os.getpid(), found):  # another thread has replaced the file
        _closers.close(found)
        raise PermissionError(errno.EPERM, "its file system may be slow to answer")
    return found


def closes_at_once(fd: int) -> bool:
    """Return whether the last close cannot block."""
    return _closes_at_once(b"/proc/self/fd/%d" % fd)


def refuse_descriptors(end: socket.socket) -> None:
    """Make the kernel refuse descriptors in messages: sigwrap would have to close them."""
    with suppress(OSError):  # before Linux 6.16, and for sockets that carry none
        end.setsockopt(socket.SOL_SOCKET, _SO_PASSRIGHTS, 0)


def let_go(fd: int) -> None:
    """Close a duplicate, or another descriptor that came from the process tree."""
    if closes_at_once(fd):
        os.close(fd)
    else:
        _closers.close(fd)


def _closes_at_once(path: bytes) -> bool:
    kind, major = kind_of(path)
    return kind != stat.S_IFSOCK and (kind != stat.S_IFCHR or major in _LOCAL_MAJORS)
