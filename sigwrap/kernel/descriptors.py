"""Descriptors: sigwrap's own, paths that it opens later exactly as before, and duplicates of those
of other processes. The last close of a file may block."""

from __future__ import annotations

import _thread
import ctypes
import errno
import fcntl
import os
import resource
import stat
from collections.abc import Iterable

from sigwrap.bare import IO, deque, socket, suppress
from sigwrap.errors import DOCTOR, KernelError, SessionError
from sigwrap.kernel.file_state import is_on_local_device, kind_of, known_state_in, mount_of
from sigwrap.kernel.libc import last_failure, raw_syscall, syscall
from sigwrap.kernel.paths import AT_FDCWD, OTHER_MOUNT, link_target
from sigwrap.kernel.signals import open_thread
from sigwrap.machine import NUMBERS

_FEWEST = 48
_SYS_CLOSE_RANGE = NUMBERS["close_range"]
_LAST = 0xFFFFFFFF
_UNSHARE = 2  # CLOSE_RANGE_UNSHARE: the table is copied first
_KINDS = {
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}

_SYS_PIDFD_GETFD = NUMBERS["pidfd_getfd"]
_pidfd_getfd = raw_syscall(ctypes.c_long, ctypes.c_long, ctypes.c_long)
_SO_PASSRIGHTS = 83
_MOST_CLOSERS = 16
_LOCAL_MAJORS = frozenset({1, *range(136, 144)})  # memory devices, pseudo-terminals


def reserve_standard_streams(*, output_may_be_closed: bool = True) -> None:
    """Open closed standard streams, before any other descriptor gets their numbers.

    They are close-on-exec, so the command still finds them closed. Where output is all that is
    wanted, writing to a closed stream must fail.
    """
    while (fd := _null()) <= 2:
        if fd == 1 and not output_may_be_closed:
            os.close(fd)
            os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.close(fd)


def _null() -> int:
    try:
        return os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError) as missing:
        raise SessionError(
            f"{os.devnull} is missing, and sigwrap needs it",
            "create it: mknod -m 666 /dev/null c 1 3",
        ) from missing


def require_enough() -> None:
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= hard < _FEWEST:
        raise SessionError(
            f"the limit of {hard} open files is too low to supervise a command",
            f"raise the limit: ulimit -n {_FEWEST}, or more; {DOCTOR}",
        )


def release_inherited() -> None:
    """Close what the caller gave the command through us, except standard error.

    The other end of a pipe must see it closed as soon as the command closes it.
    """
    null = _null()
    os.dup2(null, 0, inheritable=False)
    os.dup2(null, 1, inheritable=False)
    os.close(null)
    for fd in inherited():
        if fd > 2:
            os.close(fd)


def inherited() -> list[int]:
    """Return the descriptors from our caller: every one of ours is close-on-exec."""
    found = []
    for fd in map(int, os.listdir("/proc/self/fd")):
        with suppress(OSError):  # the descriptor of the listing
            if os.get_inheritable(fd):
                found.append(fd)
    return sorted(found)


def have_own_table(kept: Iterable[int]) -> None:
    """Give the calling thread its own descriptor table, with these descriptors only.

    The other threads' descriptors do not count for its limit, and nothing that they close stays
    open in it. Nothing happens if the kernel refuses.
    """
    with suppress(KernelError):  # only the first call can fail, and then nothing was closed
        _close_ranges_between(kept, _UNSHARE)


def close_all_but(kept: Iterable[int]) -> None:
    try:
        _close_ranges_between(kept)
    except KernelError:  # before Linux 5.9, where os.closerange tries each number
        for fd in {*map(int, os.listdir("/proc/self/fd"))}.difference(kept):
            with suppress(OSError):  # the descriptor of the listing
                os.close(fd)


def _close_ranges_between(kept: Iterable[int], flags: int = 0) -> None:
    first = 0
    for fd in (*sorted(kept), _LAST):
        last = fd if fd == _LAST else fd - 1
        if first <= last:
            syscall("close_range", _SYS_CLOSE_RANGE, first, last, flags)
            flags = 0
        first = fd + 1


def widen_pipe(pipe: int, size: int) -> None:
    """Give a pipe more room, unless its user has too much in pipes already."""
    with suppress(OSError):
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, size)


def open_plain_file(path: str) -> IO[bytes]:
    """Open a regular file. Raises OSError for anything else: a FIFO or a device would block."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        mode = os.fstat(fd).st_mode
        if not stat.S_ISREG(mode):
            kind = _KINDS.get(stat.S_IFMT(mode), "not a regular file")
            raise OSError(errno.EINVAL, f"it is {kind}")
        return open(fd, "rb")
    except BaseException:
        os.close(fd)
        raise


_PATH_FLAGS = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC

Known = dict[str, int]  # the mounts of paths


class PinnedPath:
    """An absolute path without links, which must stay on the mounts that it has now.

    Its last parts may be missing or unreadable: these must be on the mount of their directory. No
    part is looked up on another mount, whose server could block.
    """

    def __init__(self, path: str, known: Known | None = None) -> None:
        """`known` keeps mounts for other paths that are pinned now."""
        self.path = path
        known = {} if known is None else known
        self._parts: list[tuple[str, int]] = []  # names, and their mounts
        above = "/"
        for name in (".", *filter(None, path.split("/"))):
            above = os.path.join(above, name)
            if above not in known:
                try:
                    known[above] = known_state_in(AT_FDCWD, os.fsencode(above)).mount
                except OSError:
                    known[above] = self._parts[-1][1]
            self._parts.append((name, known[above]))

    def open(self, flags: int = 0) -> int:
        """Return an O_PATH descriptor; raise OSError if a link or another mount is on the path.

        A link at its end is opened itself.
        """
        fd = os.open("/", _PATH_FLAGS)
        try:
            for position, (name, mount) in enumerate(self._parts, 1):
                own_flags = flags if position == len(self._parts) else 0
                above, fd = fd, os.open(name, _PATH_FLAGS | own_flags, dir_fd=fd)
                os.close(above)
                if mount_of(fd) != mount:
                    raise OSError(errno.EXDEV, OTHER_MOUNT)
        except BaseException:
            os.close(fd)
            raise
        return fd


def duplicate(tid: int, fd: int) -> int:
    """Duplicate another thread's descriptor, close-on-exec. The duplicate shares the offset.

    Raises OSError if that is refused, or if closing the duplicate could block.
    """
    if could_stall(tid, tid, fd):
        raise PermissionError(errno.EPERM, "its file system may be slow to answer")
    if _closers.threads >= _MOST_CLOSERS and not _closes_at_once(b"/proc/%d/fd/%d" % (tid, fd)):
        raise PermissionError(errno.EPERM, "too many descriptors are still being closed")
    found = take_descriptor(tid, fd)
    if could_stall(tid, os.getpid(), found):  # another thread has replaced the file
        _closers.close(found)
        raise PermissionError(errno.EPERM, "its file system may be slow to answer")
    return found


def can_duplicate() -> bool:
    """Return whether pidfd_getfd works: Docker's default profile requires CAP_SYS_PTRACE for it.

    Also for a kernel before Linux 5.6, which lacks openat2 too: the launch tells that.
    """
    with open(os.devnull, "rb") as null:
        try:
            os.close(take_descriptor(os.getpid(), null.fileno()))
        except OSError as refusal:
            return refusal.errno == errno.ENOSYS
    return True


def take_descriptor(tid: int, fd: int) -> int:
    """Duplicate any descriptor of another thread. Raises OSError."""
    holder = open_thread(tid)
    try:
        return take_by_pidfd(holder, fd)
    finally:
        os.close(holder)


def take_by_pidfd(holder: int, fd: int) -> int:
    """Duplicate any descriptor of a process's first thread. Raises OSError."""
    found: int = _pidfd_getfd(_SYS_PIDFD_GETFD, holder, fd, 0)
    if found < 0:
        raise last_failure()
    return found


def could_stall(pid: int, holder: int, fd: int) -> bool:
    """Return whether a close could block. `holder` has it open, on a mount that `pid` sees."""
    try:
        path = f"/proc/{holder}/fd/{fd}"
        if kind_of(path.encode())[0] != stat.S_IFREG:
            return False
        is_nowhere = not (link_target(path) or "/").startswith("/")  # a pidfd, for example
        return not is_nowhere and not is_on_local_device(pid, holder, fd)
    except FileNotFoundError:
        return False  # the duplication fails with the right errno
    except OSError:
        return True


def let_go(fd: int) -> None:
    """Close a duplicate, or another descriptor that came from the process tree."""
    if _closes_at_once(b"/proc/self/fd/%d" % fd):
        os.close(fd)
    else:
        _closers.close(fd)


def _closes_at_once(path: bytes) -> bool:
    """Return whether the last close cannot block."""
    kind, major, _minor = kind_of(path)
    return kind != stat.S_IFSOCK and (kind != stat.S_IFCHR or major in _LOCAL_MAJORS)


def refuse_descriptors(end: socket.socket) -> None:
    """Make the kernel refuse descriptors in messages: sigwrap would have to close them."""
    with suppress(OSError):  # before Linux 6.16, and for sockets that carry none
        end.setsockopt(socket.SOL_SOCKET, _SO_PASSRIGHTS, 0)


class _Closers:
    """Threads that close descriptors; no request waits for them."""

    def __init__(self) -> None:
        self._lock = _thread.allocate_lock()
        self._waiting: deque[int] = deque()
        self.threads = 0

    def close(self, fd: int) -> None:
        with self._lock:
            self._waiting.append(fd)
            if self.threads < _MOST_CLOSERS:
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
