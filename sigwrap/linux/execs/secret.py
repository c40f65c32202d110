"""What holds a value of sigwrap's own environment, which its caller must not get.

The program inherits from its caller what outlives an exec. A seccomp filter of the caller's own can
kill it wherever that likes, or make its calls lie, and can't be taken off. A core dump would have
the value in it.
"""

from __future__ import annotations

import resource

from sigwrap.linux import procfs

# The kernel writes no core for 1, and starts no program that would take one: for 0 it does.
_NO_CORE = 1


def objection(tid: int) -> str:
    """Why nothing that this thread execs must get it, or nothing."""
    theirs, ours = procfs.filters(tid), procfs.filters("self")
    if theirs is None or ours is None:
        return "cannot read which seccomp filters the caller has"
    if theirs > ours + 1:  # the session's
        return "the caller installed a seccomp filter of its own"
    return ""


def keep_from_core(pid: int) -> str:
    """Why that can't be done, or nothing."""
    try:
        _soft, hard = resource.prlimit(pid, resource.RLIMIT_CORE)
        if hard != 0:  # raising it is for root
            resource.prlimit(pid, resource.RLIMIT_CORE, (_NO_CORE, _NO_CORE))
    except OSError as refusal:
        return f"cannot keep it from dumping core: {refusal.strerror}"
    return ""
