from __future__ import annotations

import os
import resource
from collections.abc import Iterable

from sigwrap.errors import DOCTOR, KernelError, SessionError
from sigwrap.linux.libc import syscall
from sigwrap.machine import NUMBERS

_FEWEST = 48
_SYS_CLOSE_RANGE = NUMBERS["close_range"]
_LAST = 0xFFFFFFFF
_UNSHARE = 2  # CLOSE_RANGE_UNSHARE: the table is copied first


def reserve_standard_streams(*, output_may_be_closed: bool = True) -> None:
    """Open closed standard streams, before a descriptor of ours gets the number of one.

    They are close-on-exec, so the command still finds them closed. With
    `output_may_be_closed=False`, a write to a closed standard output fails.
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
    """Close what the command inherits through us: a pipe closes when the command closes it.

    Standard error stays, for sigwrap's own lines.
    """
    null = _null()
    os.dup2(null, 0, inheritable=False)
    os.dup2(null, 1, inheritable=False)
    os.close(null)
    for fd in inherited():
        if fd > 2:
            os.close(fd)


def inherited() -> list[int]:
    """Return our caller's descriptors: every one of ours is close-on-exec."""
    found = []
    for fd in map(int, os.listdir("/proc/self/fd")):
        try:
            if os.get_inheritable(fd):
                found.append(fd)
        except OSError:
            continue  # the listing's own
    return sorted(found)


def have_own_table(kept: Iterable[int]) -> None:
    """Give the calling thread a descriptor table of its own, with these descriptors.

    So other threads can neither use up its limit, nor does it hold what they close. If the kernel
    refuses, nothing changes.
    """
    first, flags = 0, _UNSHARE
    for fd in (*sorted(kept), _LAST):
        last = fd if fd == _LAST else fd - 1
        if first <= last:
            try:
                syscall("close_range", _SYS_CLOSE_RANGE, first, last, flags)
            except KernelError:
                return  # only the first call can fail, before it closes anything
            flags = 0
        first = fd + 1


def close_all_but(kept: Iterable[int]) -> None:
    """Close all but these and the standard streams."""
    first = 3
    for fd in sorted({each for each in kept if each >= first}):
        os.closerange(first, fd)
        first = fd + 1
    os.closerange(first, 1 << 30)


def release_all() -> None:
    """Close all, because one thread delays the end: the readers of our pipes would wait for it."""
    os.closerange(0, 1 << 30)
