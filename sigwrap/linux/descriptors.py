from __future__ import annotations

import os
import resource

from sigwrap.errors import SessionError

_FEWEST = 48


def reserve_standard_streams() -> None:
    """Before the first descriptor is made: one of ours on a closed 0, 1 or 2 would be taken for a
    stream. Close-on-exec, so COMMAND still finds it closed."""
    while (fd := os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)) <= 2:
        pass
    os.close(fd)


def require_enough() -> None:
    _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= hard < _FEWEST:
        raise SessionError(
            f"at most {hard} open files are too few to supervise anything",
            f"raise the limit: ulimit -n {_FEWEST}, or more",
        )


def release_inherited() -> None:
    """Let go of what the caller gave COMMAND through us: a pipe's other end must see it closed as
    soon as COMMAND closes it. Standard error stays, for sigwrap's own lines. Every descriptor that
    is ours is close-on-exec; what isn't was inherited."""
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(null, 0, inheritable=False)
    os.dup2(null, 1, inheritable=False)
    os.close(null)
    for fd in [int(name) for name in os.listdir("/proc/self/fd")]:
        try:
            if fd > 2 and os.get_inheritable(fd):
                os.close(fd)
        except OSError:
            continue  # the listing's own


def release_all() -> None:
    """Of a process that is about to end but for one thread: whoever reads a pipe of ours would wait
    for that."""
    os.closerange(0, 1 << 30)
