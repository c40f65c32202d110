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
_UNSHARE = 2  # CLOSE_RANGE_UNSHARE: copied first, so that nobody else's are closed


def reserve_standard_streams(*, output_may_be_closed: bool = True) -> None:
    """Before the first descriptor is made: one of ours on a closed 0, 1 or 2 would be taken for a
    stream. Close-on-exec, so COMMAND still finds it closed. Where output is all that is wanted,
    writing to a closed one must fail."""
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
    """Let go of what the caller gave COMMAND through us: a pipe's other end must see it closed as
    soon as COMMAND closes it. Standard error stays, for sigwrap's own lines."""
    null = _null()
    os.dup2(null, 0, inheritable=False)
    os.dup2(null, 1, inheritable=False)
    os.close(null)
    for fd in inherited():
        if fd > 2:
            os.close(fd)


def inherited() -> list[int]:
    """From our caller: every descriptor of ours is close-on-exec."""
    found = []
    for fd in map(int, os.listdir("/proc/self/fd")):
        try:
            if os.get_inheritable(fd):
                found.append(fd)
        except OSError:
            continue  # the listing's own
    return sorted(found)


def have_own_table(kept: Iterable[int]) -> None:
    """Of the calling thread alone, with these descriptors under the same numbers: however many the
    others have open, the limit is not reached here, and nothing that they close stays open. Where
    the kernel refuses, all is as before."""
    first, flags = 0, _UNSHARE
    for fd in (*sorted(kept), _LAST):
        last = fd if fd == _LAST else fd - 1
        if first <= last:
            try:
                syscall("close_range", _SYS_CLOSE_RANGE, first, last, flags)
            except KernelError:
                return  # only the first one can fail, by which nothing was closed
            flags = 0
        first = fd + 1


def close_all_but(kept: Iterable[int]) -> None:
    """And the standard streams."""
    first = 3
    for fd in sorted({each for each in kept if each >= first}):
        os.closerange(first, fd)
        first = fd + 1
    os.closerange(first, 1 << 30)


def release_all() -> None:
    """Of a process that is about to end but for one thread: whoever reads a pipe of ours would wait
    for that."""
    os.closerange(0, 1 << 30)
