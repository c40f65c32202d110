"""Decodes a mediated call: its signal, and how it names its target."""

from __future__ import annotations

import errno

from sigwrap import calls
from sigwrap.bare import NamedTuple, signal
from sigwrap.kernel.memory import Memory, Unreadable
from sigwrap.kernel.seccomp import Notification, int32
from sigwrap.kernel.signals import SIGINFO_BYTES
from sigwrap.signal.facts import How

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

EVERYBODY = -1  # as a target: all processes
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

Span = tuple[int, int]  # an address and a number of bytes


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
    value: int = 0  # the new priority, I/O class or scheduling policy; or the limit's number
    limits: tuple[int, int] | None = None  # soft and hard; None if they cannot be read
    old_limits_at: int = 0  # where the caller wants the old limits
    is_i386: bool = False
    held: int = -1  # the supervisor's duplicate of the descriptor, which the caller cannot swap


class NoTarget(Exception):
    """The call's registers show that it reaches no process, so the kernel may continue it."""


class UnknownUse(Exception):
    """The filter handed over a use of a call that sigwrap does not handle."""

    def __init__(self, syscall: str) -> None:
        super().__init__(f"sigwrap does not handle this use of {syscall}")


class CallRefused(Exception):
    """The kernel would refuse the call with this errno.

    The supervisor returns it: the kernel would read the caller's memory again, and another thread
    may have changed it.
    """

    def __init__(self, error: int) -> None:
        super().__init__(error)
        self.errno = error


def undecoded(syscall: str) -> SignalCall:
    return SignalCall(syscall, How.NUMBER, signal=0, target=0)


def pointed_at(notification: Notification, syscall: str) -> Span | None:
    """Return the caller's memory that the call points to, or None if it uses registers alone."""
    match syscall:
        case "rt_sigqueueinfo" | "pidfd_send_signal":
            address = notification.argument2
            return (address, SIGINFO_BYTES) if address else None
        case "rt_tgsigqueueinfo":
            address = notification.argument3
            return (address, SIGINFO_BYTES) if address else None
        case "prlimit64":
            return notification.argument2, 16
        case "ioctl" if notification.argument1 & 0xFFFFFFFF in _POINT_TO_INT:
            return notification.argument2, 4
        case "fcntl" | "fcntl64" if notification.argument1 & 0xFFFFFFFF == calls.F_SETOWN_EX:
            return notification.argument2, 8
        case _:
            return None


def read(tid: int, span: Span, *, may_wait: bool = False) -> bytes | None:
    """Return the memory, or None if it cannot be read."""
    try:
        with Memory(tid, may_wait=may_wait) as memory:
            return memory.block(*span)
    except Unreadable:
        return None


def read_call(notification: Notification, syscall: str, words: bytes | None) -> SignalCall:
    """Decode a call. `words` is the memory that it points to, None if that cannot be read.

    Raises NoTarget, CallRefused and UnknownUse.
    """
    match syscall:
        case "kill" | "tkill" | "rt_sigqueueinfo":
            target, number = int32(notification.argument0), int32(notification.argument1)
            if syscall != "kill" and target <= 0:
                raise NoTarget
            thread = target if syscall == "tkill" else 0
            return _by_number(syscall, notification, number, target, thread, words)
        case "tgkill" | "rt_tgsigqueueinfo":
            # The kernel requires that the thread belongs to this process, which is the target.
            target, number = int32(notification.argument0), int32(notification.argument2)
            thread = int32(notification.argument1)
            if target <= 0 or thread <= 0:
                raise NoTarget
            return _by_number(syscall, notification, number, target, thread, words)
        case "pidfd_send_signal":
            return _pidfd(syscall, notification, words)
        case "ptrace" if notification.argument0 & 0xFFFFFFFF == calls.PTRACE_TRACEME:
            return SignalCall(syscall, How.TRACED_BY_PARENT, signal.SIGKILL, 0)
        case "ptrace":
            return _on_another(syscall, How.TRACE, signal.SIGKILL, notification.argument1)
        case "prlimit64":
            return _limits(syscall, notification, words)
        case _ if syscall in _SLOWING:
            call = _on_another(syscall, How.CHANGE, signal.SIGSTOP, notification.argument0)
            return call._replace(value=int32(notification.argument1))
        case "process_vm_readv" | "process_vm_writev":
            if not notification.argument2 or not notification.argument4:
                raise NoTarget  # nothing is copied, and the kernel looks up no process
            return _on_another(syscall, How.TRACE, signal.SIGKILL, notification.argument0)
        case "perf_event_open":
            return _perf_event(syscall, notification)
        case "setpriority" | "ioprio_set":
            return _priority(syscall, notification)
        case "setpgid":
            return _joined_group(syscall, notification)
        case "ioctl":
            return _ioctl(syscall, notification, words)
        case "fcntl" | "fcntl64":
            return _fcntl(syscall, notification, words)
        case _:
            raise UnknownUse(syscall)


def _on_another(name: str, how: How, number: int, register: int) -> SignalCall:
    target = int32(register)
    if target <= 0:
        raise NoTarget
    return SignalCall(name, how, number, target)


def _limits(name: str, notification: Notification, words: bytes | None) -> SignalCall:
    call = _on_another(name, How.CHANGE, signal.SIGKILL, notification.argument0)
    if words is not None:
        soft, hard = memoryview(words).cast("q").tolist()
        call = call._replace(limits=(soft, hard))
    return call._replace(value=int32(notification.argument1), old_limits_at=notification.argument3)


def _perf_event(name: str, notification: Notification) -> SignalCall:
    target = int32(notification.argument1)
    if notification.argument4 & calls.PERF_FLAG_PID_CGROUP or target < 0:
        return SignalCall(name, How.CHANGE, signal.SIGKILL, EVERYBODY)
    return SignalCall(name, How.TRACE, signal.SIGKILL, target)


def _priority(name: str, notification: Notification) -> SignalCall:
    kind = int32(notification.argument0) - (name == "ioprio_set")  # ioprio_set counts from 1
    target = int32(notification.argument1)
    if kind == calls.PRIO_USER:
        target = EVERYBODY
    elif target < 0:
        raise NoTarget
    elif kind == calls.PRIO_PGRP:
        target = -target
    value = int32(notification.argument2)
    return SignalCall(name, How.CHANGE, signal.SIGSTOP, target, value=value)


def _joined_group(name: str, notification: Notification) -> SignalCall:
    process, group = int32(notification.argument0), int32(notification.argument1)
    if process < 0 or group <= 0 or process == group:
        raise NoTarget  # EINVAL, or a group that the process itself leads
    return SignalCall(name, How.JOIN, signal.SIGTTIN, -group, thread=process)


def _ioctl(name: str, notification: Notification, words: bytes | None) -> SignalCall:
    descriptor = int32(notification.argument0)
    match notification.argument1 & 0xFFFFFFFF:
        case calls.FIOSETOWN | calls.SIOCSPGRP:
            (target,) = _ints(words)
            if target == _LOWEST:
                raise CallRefused(errno.EINVAL)
            return _owner(name, How.OWNER_IN_MEMORY, target, notification)
        case calls.FIOASYNC:
            (on,) = _ints(words)
            return _async(name, descriptor, calls.O_ASYNC if on else 0)
        case calls.TIOCSPGRP:
            (group,) = _ints(words)
            if group < 0:
                raise CallRefused(errno.EINVAL)
            return SignalCall(name, How.FOREGROUND, signal.SIGTTIN, -group, descriptor=descriptor)
        case calls.TIOCSCTTY:
            return SignalCall(name, How.TERMINAL, signal.SIGHUP, 0, descriptor=descriptor)
        case _:
            raise UnknownUse(name)


def _by_number(
    syscall: str,
    notification: Notification,
    number: int,
    target: int,
    thread: int,
    info: bytes | None,
) -> SignalCall:
    is_i386 = notification.arch == calls.I386
    return SignalCall(syscall, How.NUMBER, number, target, thread, info=info, is_i386=is_i386)


def _pidfd(name: str, notification: Notification, info: bytes | None) -> SignalCall:
    pidfd, flags = int32(notification.argument0), notification.argument3 & 0xFFFFFFFF
    is_self = pidfd in (PIDFD_SELF_THREAD, _PIDFD_SELF_PROCESS)
    if flags not in _PIDFD_FLAGS or (pidfd < 0 and not is_self):
        raise NoTarget  # EINVAL or EBADF for any descriptors
    return SignalCall(
        syscall=name,
        how=How.ITSELF if is_self else How.PIDFD,
        signal=int32(notification.argument1),
        target=pidfd,
        info=info,
        flags=flags,
        is_i386=notification.arch == calls.I386,
    )


def _async(name: str, descriptor: int, flags: int) -> SignalCall:
    return SignalCall(name, How.ASYNC, signal.SIGKILL, 0, descriptor=descriptor, flags=flags)


def _fcntl(name: str, notification: Notification, words: bytes | None) -> SignalCall:
    descriptor = int32(notification.argument0)
    match notification.argument1 & 0xFFFFFFFF:
        case calls.F_SETOWN:
            target = int32(notification.argument2)
            if target in (0, _LOWEST):
                raise NoTarget  # clears the owner, or EINVAL
            return _owner(name, How.OWNER, target, notification)
        case calls.F_SETOWN_EX:
            kind, owner = _ints(words)
            if kind not in (F_OWNER_TID, F_OWNER_PID, F_OWNER_PGRP):
                raise CallRefused(errno.EINVAL)
            if owner < 0:
                raise CallRefused(errno.ESRCH)
            target = -owner if kind == F_OWNER_PGRP else owner
            thread = owner if kind == F_OWNER_TID else 0
            return _owner(name, How.OWNER_IN_MEMORY, target, notification, thread)
        case calls.F_SETSIG:
            number = int32(notification.argument2)
            return SignalCall(
                syscall=name,
                how=How.SIGNAL_OF_OWNER,
                signal=number or signal.SIGIO,
                target=0,
                descriptor=descriptor,
                flags=number,
            )
        case calls.F_SETFL:
            return _async(name, descriptor, notification.argument2 & 0xFFFFFFFF)
        case _:
            raise UnknownUse(name)


def _owner(
    name: str, how: How, target: int, notification: Notification, thread: int = 0
) -> SignalCall:
    """Decode as SIGKILL, the most severe signal that F_SETSIG could choose."""
    kind = F_OWNER_PGRP if target < 0 else F_OWNER_TID if thread else F_OWNER_PID
    return SignalCall(
        syscall=name,
        how=how,
        signal=signal.SIGKILL,
        target=target,
        thread=thread,
        descriptor=int32(notification.argument0),
        owner_kind=kind,
    )


def _ints(words: bytes | None) -> list[int]:
    if words is None:
        raise CallRefused(errno.EFAULT)
    return memoryview(words).cast("i").tolist()
