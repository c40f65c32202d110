"""Decodes a mediated call: its signal, and how it names its target."""

from __future__ import annotations

import errno
import struct

from sigwrap import calls
from sigwrap.bare import NamedTuple, signal
from sigwrap.errors import InternalError
from sigwrap.kernel.memory import Memory, Unreadable
from sigwrap.kernel.seccomp import Notification, int32
from sigwrap.kernel.signals import SIGINFO_BYTES
from sigwrap.session.effects import Continue, Fail, would_fail
from sigwrap.signal.facts import REACHES_NONE, How

_LOWEST = -(1 << 31)

F_OWNER_TID = 0
F_OWNER_PID = 1
F_OWNER_PGRP = 2

# pidfd_send_signal's flags, Linux 6.9
PIDFD_SIGNAL_THREAD = 1
PIDFD_SIGNAL_PROCESS_GROUP = 4
_PIDFD_FLAGS = (0, PIDFD_SIGNAL_THREAD, 2, PIDFD_SIGNAL_PROCESS_GROUP)
PIDFD_SELF_THREAD = -10000  # Linux 6.15
_PIDFD_SELF_PROCESS = -10001

EVERY_PROCESS = -1  # as a target
_SLOWING = (
    "sched_setparam",
    "sched_setscheduler",
    "sched_setattr",
    "sched_setaffinity",
    "migrate_pages",
    "move_pages",
)
# The argument of these ioctl requests points to an int.
_POINT_TO_INT = (calls.FIOSETOWN, calls.SIOCSPGRP, calls.FIOASYNC, calls.TIOCSPGRP)


class SignalCall(NamedTuple):
    """One decoded call. Numbers and descriptors in it are the caller's, except `held`."""

    syscall: str
    how: How
    signal: int
    target: int  # above 0 a process, below 0 a group, 0 the caller's group; or the pidfd
    thread: int = 0  # a thread of it, if the call names one
    descriptor: int = -1  # the one whose owner is set
    owner_kind: int = F_OWNER_PID
    flags: int = 0
    info: bytes | None = b""  # the caller's own siginfo; None if it cannot be read
    value: int = 0  # the new priority, I/O class or scheduling policy
    held: int = -1  # the supervisor's duplicate of the descriptor, which the caller cannot swap


class Settled(Exception):
    """The arguments show the answer, whichever processes there are.

    The supervisor returns a failure itself: the kernel would read the caller's memory again, and
    another thread may have changed it.
    """

    def __init__(self, answer: Continue | Fail) -> None:
        super().__init__(answer)
        self.answer = answer


def undecoded(syscall: str) -> SignalCall:
    return SignalCall(syscall, How.NUMBER, signal=0, target=0)


def read_words(notification: Notification, syscall: str, *, may_wait: bool) -> bytes | None:
    """Return the memory that the call points to, None if it cannot be read.

    It is empty if the call uses registers alone.
    """
    match syscall:
        case "rt_sigqueueinfo" | "pidfd_send_signal":
            address, size = notification.argument2, SIGINFO_BYTES
        case "rt_tgsigqueueinfo":
            address, size = notification.argument3, SIGINFO_BYTES
        case "ioctl" if notification.argument1 & 0xFFFFFFFF in _POINT_TO_INT:
            address, size = notification.argument2, 4
        case "fcntl" | "fcntl64" if notification.argument1 & 0xFFFFFFFF == calls.F_SETOWN_EX:
            address, size = notification.argument2, 8
        case _:
            return b""
    if not address and size == SIGINFO_BYTES:
        return b""
    try:
        with Memory(notification.tid, may_wait=may_wait) as memory:
            return memory.block(address, size)
    except Unreadable:
        return None


def read_call(notification: Notification, syscall: str, words: bytes | None) -> SignalCall:
    """Decode a call. `words` is the memory that it points to, None if that cannot be read.

    Raises Settled.
    """
    match syscall:
        case "kill" | "tkill" | "rt_sigqueueinfo":
            target, number = int32(notification.argument0), int32(notification.argument1)
            if syscall != "kill" and target <= 0:
                raise Settled(REACHES_NONE)
            thread = target if syscall == "tkill" else 0
            info = _siginfo(notification, words, number)
            return SignalCall(syscall, How.NUMBER, number, target, thread, info=info)
        case "tgkill" | "rt_tgsigqueueinfo":
            # The kernel requires that the thread belongs to this process, which is the target.
            target, number = int32(notification.argument0), int32(notification.argument2)
            thread = int32(notification.argument1)
            if target <= 0 or thread <= 0:
                raise Settled(REACHES_NONE)
            info = _siginfo(notification, words, number)
            return SignalCall(syscall, How.NUMBER, number, target, thread, info=info)
        case "pidfd_send_signal":
            return _pidfd(syscall, notification, words)
        case "ptrace" if notification.argument0 & 0xFFFFFFFF == calls.PTRACE_TRACEME:
            return SignalCall(syscall, How.TRACED_BY_PARENT, signal.SIGKILL, 0)
        case "ptrace":
            return _on_another(syscall, How.TRACE, signal.SIGKILL, notification.argument1)
        case "prlimit64":
            return _on_another(syscall, How.CHANGE, signal.SIGKILL, notification.argument0)
        case _ if syscall in _SLOWING:
            call = _on_another(syscall, How.CHANGE, signal.SIGSTOP, notification.argument0)
            return call._replace(value=int32(notification.argument1))
        case "process_vm_readv" | "process_vm_writev":
            if not notification.argument2 or not notification.argument4:
                raise Settled(REACHES_NONE)  # nothing is copied, and no process is looked up
            return _on_another(syscall, How.TRACE, signal.SIGKILL, notification.argument0)
        case "perf_event_open":
            target = int32(notification.argument1)
            if notification.argument4 & calls.PERF_FLAG_PID_CGROUP or target < 0:
                return SignalCall(syscall, How.CHANGE, signal.SIGKILL, EVERY_PROCESS)
            return SignalCall(syscall, How.TRACE, signal.SIGKILL, target)
        case "setpriority" | "ioprio_set":
            return _priority(syscall, notification)
        case "setpgid":
            process, group = int32(notification.argument0), int32(notification.argument1)
            if process < 0 or group <= 0 or process == group:
                raise Settled(REACHES_NONE)  # EINVAL, or a group that the process itself leads
            return SignalCall(syscall, How.JOIN, signal.SIGTTIN, -group, thread=process)
        case "ioctl":
            return _ioctl(syscall, notification, words)
        case "fcntl" | "fcntl64":
            return _fcntl(syscall, notification, words)
        case _:
            raise _unknown(syscall)


def _siginfo(
    notification: Notification, words: bytes | None, number: int | None = None
) -> bytes | None:
    """Return the caller's siginfo in the layout of x86-64. The kernel writes some `number`s."""
    if not words:
        return words
    if notification.arch == calls.I386:  # no padding after the first three ints
        words = words[:12] + bytes(4) + words[12 : SIGINFO_BYTES - 4]
    return words if number is None else struct.pack("<i", number) + words[4:]


def _on_another(name: str, how: How, number: int, register: int) -> SignalCall:
    target = int32(register)
    if target <= 0:
        raise Settled(REACHES_NONE)
    return SignalCall(name, how, number, target)


def _pidfd(name: str, notification: Notification, words: bytes | None) -> SignalCall:
    pidfd, flags = int32(notification.argument0), notification.argument3 & 0xFFFFFFFF
    is_self = pidfd in (PIDFD_SELF_THREAD, _PIDFD_SELF_PROCESS)
    if flags not in _PIDFD_FLAGS or (pidfd < 0 and not is_self):
        raise Settled(REACHES_NONE)  # EINVAL or EBADF for any descriptors
    how = How.ITSELF if is_self else How.PIDFD
    number, info = int32(notification.argument1), _siginfo(notification, words)
    return SignalCall(name, how, number, pidfd, flags=flags, info=info)


def _priority(name: str, notification: Notification) -> SignalCall:
    kind = int32(notification.argument0) - (name == "ioprio_set")  # ioprio_set counts from 1
    target = int32(notification.argument1)
    if kind == calls.PRIO_USER:
        target = EVERY_PROCESS
    elif target < 0:
        raise Settled(REACHES_NONE)
    elif kind == calls.PRIO_PGRP:
        target = -target
    value = int32(notification.argument2)
    return SignalCall(name, How.CHANGE, signal.SIGSTOP, target, value=value)


def _ioctl(name: str, notification: Notification, words: bytes | None) -> SignalCall:
    descriptor = int32(notification.argument0)
    match notification.argument1 & 0xFFFFFFFF:
        case calls.FIOSETOWN | calls.SIOCSPGRP:
            (target,) = _ints(words)
            if target == _LOWEST:
                raise Settled(would_fail(errno.EINVAL))
            return _owner(name, How.OWNER_IN_MEMORY, target, descriptor)
        case calls.FIOASYNC:
            (on,) = _ints(words)
            return _async(name, descriptor, calls.O_ASYNC if on else 0)
        case calls.TIOCSPGRP:
            (group,) = _ints(words)
            if group < 0:
                raise Settled(would_fail(errno.EINVAL))
            return SignalCall(name, How.FOREGROUND, signal.SIGTTIN, -group, descriptor=descriptor)
        case calls.TIOCSCTTY:
            return SignalCall(name, How.TERMINAL, signal.SIGHUP, 0, descriptor=descriptor)
        case _:
            raise _unknown(name)


def _fcntl(name: str, notification: Notification, words: bytes | None) -> SignalCall:
    descriptor, value = int32(notification.argument0), int32(notification.argument2)
    match notification.argument1 & 0xFFFFFFFF:
        case calls.F_SETOWN:
            if value in (0, _LOWEST):
                raise Settled(REACHES_NONE)  # clears the owner, or EINVAL
            return _owner(name, How.OWNER, value, descriptor)
        case calls.F_SETOWN_EX:
            kind, owner = _ints(words)
            if kind not in (F_OWNER_TID, F_OWNER_PID, F_OWNER_PGRP):
                raise Settled(would_fail(errno.EINVAL))
            if owner < 0:
                raise Settled(would_fail(errno.ESRCH))
            target = -owner if kind == F_OWNER_PGRP else owner
            thread = owner if kind == F_OWNER_TID else 0
            return _owner(name, How.OWNER_IN_MEMORY, target, descriptor, thread)
        case calls.F_SETSIG:
            return SignalCall(
                syscall=name,
                how=How.SIGNAL_OF_OWNER,
                signal=value or signal.SIGIO,
                target=0,
                descriptor=descriptor,
                flags=value,
            )
        case calls.F_SETFL:
            return _async(name, descriptor, notification.argument2 & 0xFFFFFFFF)
        case _:
            raise _unknown(name)


def _async(name: str, descriptor: int, flags: int) -> SignalCall:
    return SignalCall(name, How.ASYNC, signal.SIGKILL, 0, descriptor=descriptor, flags=flags)


def _owner(name: str, how: How, target: int, descriptor: int, thread: int = 0) -> SignalCall:
    """Decode as SIGKILL, the most severe signal that F_SETSIG could choose."""
    return SignalCall(
        syscall=name,
        how=how,
        signal=signal.SIGKILL,
        target=target,
        thread=thread,
        descriptor=descriptor,
        owner_kind=F_OWNER_PGRP if target < 0 else F_OWNER_TID if thread else F_OWNER_PID,
    )


def _ints(words: bytes | None) -> list[int]:
    if words is None:
        raise Settled(would_fail(errno.EFAULT))
    return memoryview(words).cast("i").tolist()


def _unknown(syscall: str) -> InternalError:
    return InternalError(f"the filter handed over an unexpected use of {syscall}")
