"""What a caller says of another's memory (process_madvise), said in its place: never more than the
kernel would let it say.

Its pidfd can be swapped for another by another thread, so the kernel must not look again where that
could reach more than the caller itself. It can't where the caller lacks CAP_SYS_NICE; who has that
is mostly root, whom a Landlock domain doesn't keep out here: CAP_PERFMON gets by it (Linux 6.18).
"""

from __future__ import annotations

import errno
import os
import struct

from sigwrap.linux import proc_files, procfs
from sigwrap.linux.libc import syscall
from sigwrap.linux.signals.call import SignalCall
from sigwrap.linux.signals.send import is_still
from sigwrap.linux.signals.take import check_may_look_into
from sigwrap.machine import NUMBERS
from sigwrap.mediate.effects import SignalTarget
from sigwrap.mediate.lineage import Process
from sigwrap.policy.judge.request import TargetType

_SYS_PROCESS_MADVISE = NUMBERS["process_madvise"]
# The others wait for files (MADV_COLLAPSE), or are for the caller's own memory: it has madvise.
_MADV_COLD, _MADV_PAGEOUT = 20, 21
_FIRST_USER_NAMESPACE = "user:[4026531837]"  # PROC_USER_INIT_INO: the kernel asks for it there


def can_reach_others(tid: int) -> bool:
    """Whether the kernel would let this thread name anybody but itself."""
    credentials = procfs.credentials(tid)
    if credentials is None or not credentials.can_slow_anybody:
        return False
    try:
        return proc_files.link(f"/proc/{tid}/ns/user") == _FIRST_USER_NAMESPACE
    except OSError:
        return True


def check_may_advise(sender: Process, call: SignalCall, target: SignalTarget) -> None:
    """Raises what the caller is to be told."""
    if call.advice not in (_MADV_COLD, _MADV_PAGEOUT):
        raise OSError(errno.EINVAL, "advice")
    if TargetType.SELF not in target.types:
        check_may_look_into(sender.pid, target)


def advise(call: SignalCall, target: SignalTarget) -> int:
    """For how many bytes it was taken. It takes as long as there are pages."""
    pidfd = os.pidfd_open(target.pid)
    try:
        # Held first, so this is what was judged.
        if not is_still(target):
            raise ProcessLookupError(errno.ESRCH, "it has ended")
        ranges, count = b"".join(struct.pack("QQ", *each) for each in call.ranges), len(call.ranges)
        return syscall(
            "process_madvise", _SYS_PROCESS_MADVISE, pidfd, ranges, count, call.advice, 0
        )
    finally:
        os.close(pidfd)
