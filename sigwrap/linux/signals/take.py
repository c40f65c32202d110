"""A descriptor that one process takes from another, taken in its place: never more than the kernel
would let it take. The rules are ptrace's (man 2 ptrace, "Ptrace access mode checking")."""

from __future__ import annotations

import errno

from sigwrap.linux import procfs
from sigwrap.linux.foreign_fds import taken
from sigwrap.linux.libc import syscall
from sigwrap.linux.signals.call import SignalCall
from sigwrap.linux.signals.send import is_still
from sigwrap.machine import NUMBERS
from sigwrap.mediate.effects import SignalTarget
from sigwrap.mediate.lineage import Process
from sigwrap.policy.judge.request import TargetType

_SYS_PIDFD_GETFD = NUMBERS["pidfd_getfd"]


def take_descriptor(sender: Process, call: SignalCall, target: SignalTarget) -> int:
    if not is_still(target):
        raise ProcessLookupError(errno.ESRCH, "it has ended")
    if TargetType.SELF not in target.types:
        _check_kernel_would_let(sender.pid, target)
    number = call.descriptor
    return taken(
        target.pid, number, lambda: syscall("pidfd_getfd", _SYS_PIDFD_GETFD, call.held, number, 0)
    )


def _check_kernel_would_let(sender: int, target: SignalTarget) -> None:
    """The kernel checks us, who stand above all of the tree: Yama and a user namespace let us do
    more, and root even where the target isn't dumpable."""
    check_may_look_into(sender, target)
    if procfs.yama_scope() > 0 and TargetType.DESCENDANTS not in target.types:
        raise PermissionError(errno.EPERM, "it may not be traced")


def check_may_look_into(sender: int, target: SignalTarget) -> None:
    identity = procfs.identity(sender)
    if (
        not identity
        or identity != procfs.identity(target.pid)
        or not procfs.is_dumpable(target.pid)
    ):
        raise PermissionError(errno.EPERM, "it may not be traced")
