"""To end by the signal that another process ended by, and leave no core of one's own."""

from __future__ import annotations

import os
import resource
import signal


def die_of(signal_number: int) -> None:
    """Returns where that doesn't come, as in the first process of a namespace."""
    keep_from_core(os.getpid())
    if signal_number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(signal_number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal_number})
    try:
        os.kill(os.getpid(), signal_number)
    except OSError:
        pass


def keep_from_core(pid: int) -> None:
    """A limit of 1 also keeps a program that the kernel pipes cores to from being started."""
    _soft, hard = resource.prlimit(pid, resource.RLIMIT_CORE)
    resource.prlimit(pid, resource.RLIMIT_CORE, (1 if hard else 0, hard))
