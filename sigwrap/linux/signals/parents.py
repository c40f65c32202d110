"""What a direct child may change of its parent, as helpers do for the shell that runs them
(`renice -p $$`): how little of the machine the shell gets, but not that the kernel ends it.

New limits lie in the caller's memory, where another thread could put higher ones. So the supervisor
reads them once and sets them itself.
"""

from __future__ import annotations

import errno
import resource
import struct

from sigwrap.linux import proc_files, procfs
from sigwrap.linux.memory import may_be_served, write_memory
from sigwrap.linux.signals.call import SignalCall
from sigwrap.linux.signals.send import is_still
from sigwrap.mediate.effects import SignalTarget
from sigwrap.mediate.lineage import Process

_RLIMIT_RTTIME = 15
_UNSIGNED = (1 << 64) - 1
_SCHED_OTHER, _SCHED_BATCH, _SCHED_IDLE = 0, 3, 5
_SCHED_RESET_ON_FORK = 0x40000000
_IOPRIO_CLASS_SHIFT, _IOPRIO_CLASS_MASK, _IOPRIO_CLASS_RT = 13, 7, 1
# Beyond these, the kernel sends SIGXCPU, SIGKILL, SIGXFSZ.
_ENDING = frozenset({resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, _RLIMIT_RTTIME})
_SHELLS = frozenset("sh bash rbash dash ash busybox zsh ksh mksh yash posh fish".split())


def may_change(sender: Process, call: SignalCall, target: SignalTarget) -> bool:
    parent = sender.parent
    if parent is None or parent.has_ended or parent.pid != target.pid:
        return False
    if not _is_a_systems_shell(target.pid):
        return False
    match call.syscall:
        case "setpriority" | "sched_setaffinity":
            return True
        case "ioprio_set":
            return call.value >> _IOPRIO_CLASS_SHIFT & _IOPRIO_CLASS_MASK != _IOPRIO_CLASS_RT
        case "sched_setscheduler":
            policy = call.value & ~_SCHED_RESET_ON_FORK
            return policy in (_SCHED_OTHER, _SCHED_BATCH, _SCHED_IDLE)
        case "prlimit64":
            return call.value not in _ENDING and _lowers(call, target.pid)
        case _:
            return False


def set_limits(sender: Process, tid: int, call: SignalCall, target: SignalTarget) -> None:
    """Raises what the caller is to be told."""
    identity = procfs.identity(sender.pid)
    if not identity or identity != procfs.identity(target.pid):
        raise PermissionError(errno.EPERM, "another user's")
    if not is_still(target):
        raise ProcessLookupError(errno.ESRCH, "it has ended")
    assert call.limits is not None, "judged by them"
    try:
        old = resource.prlimit(target.pid, call.value, call.limits)
    except ValueError as refusal:
        raise OSError(errno.EINVAL, "limits") from refusal
    if call.old_limits_at:
        write_memory(tid, call.old_limits_at, struct.pack("qq", *old))


def _is_a_systems_shell(pid: int) -> bool:
    """Others may be agents, or what a rule protects. Only root names a file that is its own."""
    exe = f"/proc/{pid}/exe"
    try:
        name = proc_files.link(exe).rpartition("/")[2]
        return name in _SHELLS and proc_files.file_status(exe).st_uid == 0
    except OSError:
        return False


def _lowers(call: SignalCall, pid: int) -> bool:
    """Where the old limits go to memory that the supervisor could wait for, none are set."""
    if call.limits is None or (call.old_limits_at and may_be_served()):
        return False
    try:
        now = resource.prlimit(pid, call.value)
    except (OSError, ValueError):
        return False
    pairs = zip(call.limits, now, strict=True)
    return all(new & _UNSIGNED <= old & _UNSIGNED for new, old in pairs)  # no limit is -1
