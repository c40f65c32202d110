"""What a mediated call asks for: which signal, to whom."""

from __future__ import annotations

import errno

from sigwrap import calls
from sigwrap.bare import signal
from sigwrap.linux.seccomp import Notification, int32
from sigwrap.mediate.signal_facts import How
from sigwrap.tuples import NamedTuple

_LOWEST = -(1 << 31)

F_OWNER_TID = 0
F_OWNER_PID = 1
F_OWNER_PGRP = 2

# pidfd_send_signal's flags, Linux 6.9
PIDFD_SIGNAL_THREAD = 1
PIDFD_SIGNAL_PROCESS_GROUP = 4
_PIDFD_FLAGS = (0, PIDFD_SIGNAL_THREAD, 2, PIDFD_SIGNAL_PROCESS_GROUP)
PIDFD_SELF_THREAD = -10000  # Linux 6.15, and one below it the thread's process
_PIDFD_SELF = (PIDFD_SELF_THREAD, -10001)


EVERYBODY = -1  # a target
_SLOWING = (
    "sched_setparam",
    "sched_setscheduler",
    "sched_setattr",
    "sched_setaffinity",
    "migrate_pages",
    "move_pages",
)


class SignalCall(NamedTuple):
    """One decoded call. Addresses and descriptors in it are the caller's."""

    syscall: str
    how: How
    signal: int
    target: int  # above 0 a process, below a group, 0 the caller's group; or the pidfd
    thread: int = 0  # which one of the target's is meant, as the caller numbers it
    descriptor: int = -1  # whose owner is set
    owner_kind: int = F_OWNER_PID
    flags: int = 0
    info: bytes | None = b""  # a siginfo of the caller's own making; None: it can't be read
    value: int = 0  # what a priority, a class or a scheduling policy becomes; which limit
    limits: tuple[int, int] | None = None  # soft and hard; None where they can't be read
    old_limits_at: int = 0  # where the caller is told of the old ones
    is_i386: bool = False  # so is its siginfo
    held: int = -1  # ours: a duplicate of the descriptor, which the caller can't swap


class NoTarget(Exception):
    """By its registers the call can reach no process: the kernel can have it."""


class UnknownUse(Exception):
    """The filter handed over a use of the call that no mediator knows."""

    def __init__(self, syscall: str) -> None:
        super().__init__(f"sigwrap does not handle this use of {syscall}")


class CallRefused(Exception):
    """The kernel would refuse the call with this errno. It must not look for itself: by then there
    may be something else in the caller's memory."""

    def __init__(self, error: int) -> None:
        super().__init__(error)
        self.errno = error


def read_call(notification: Notification, syscall: str, words: bytes | None) -> SignalCall:
    """`words`: what its pointer leads to, None where that can't be read. Raises NoTarget,
    CallRefused and UnknownUse."""
    match syscall:
        case "kill" | "tkill" | "rt_sigqueueinfo":
            target, number = int32(notification.argument0), int32(notification.argument1)
            if syscall != "kill" and target <= 0:
                raise NoTarget
            thread = target if syscall == "tkill" else 0
            return _by_number(syscall, notification, number, target, thread, words)
        case "tgkill" | "rt_tgsigqueueinfo":
            # The kernel demands that the thread be of this process, so the process is the target.
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
            return _at_another(syscall, How.TRACE, signal.SIGKILL, notification.argument1)
        case "prlimit64":
            return _limits(syscall, notification, words)
        case _ if syscall in _SLOWING:
            call = _at_another(syscall, How.CHANGE, signal.SIGSTOP, notification.argument0)
            return call._replace(value=int32(notification.argument1))
        case "process_vm_readv" | "process_vm_writev":
            if not notification.argument2 or not notification.argument4:
                raise NoTarget  # nothing is to be copied, and the kernel looks for no process
            return _at_another(syscall, How.TRACE, signal.SIGKILL, notification.argument0)
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


def _at_another(name: str, how: How, number: int, register: int) -> SignalCall:
    target = int32(register)
    if target <= 0:
        raise NoTarget
    return SignalCall(name, how, number, target)


def _limits(name: str, notification: Notification, words: bytes | None) -> SignalCall:
    call = _at_another(name, How.CHANGE, signal.SIGKILL, notification.argument0)
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
    """Which of them it is, as setpriority counts; ioprio_set counts from 1."""
    kind = int32(notification.argument0) - (name == "ioprio_set")
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
        raise NoTarget  # EINVAL, or a group that the process leads
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
            flags = calls.O_ASYNC if on else 0
            return SignalCall(
                name, How.ASYNC, signal.SIGKILL, 0, descriptor=descriptor, flags=flags
            )
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
    if flags not in _PIDFD_FLAGS or (pidfd < 0 and pidfd not in _PIDFD_SELF):
        raise NoTarget  # EINVAL or EBADF, whatever the descriptors are
    return SignalCall(
        syscall=name,
        how=How.PIDFD if pidfd >= 0 else How.ITSELF,
        signal=int32(notification.argument1),
        target=pidfd,
        info=info,
        flags=flags,
        is_i386=notification.arch == calls.I386,
    )


def _fcntl(name: str, notification: Notification, words: bytes | None) -> SignalCall:
    match notification.argument1 & 0xFFFFFFFF:
        case calls.F_SETOWN:
            target = int32(notification.argument2)
            if target in (0, _LOWEST):
                raise NoTarget  # nobody owns it any more, or EINVAL
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
                name,
                How.SIGNAL_OF_OWNER,
                number or signal.SIGIO,
                0,
                descriptor=int32(notification.argument0),
                flags=number,
            )
        case calls.F_SETFL:
            flags = notification.argument2 & 0xFFFFFFFF
            descriptor = int32(notification.argument0)
            return SignalCall(
                name, How.ASYNC, signal.SIGKILL, 0, descriptor=descriptor, flags=flags
            )
        case _:
            raise UnknownUse(name)


def _owner(
    name: str, how: How, target: int, notification: Notification, thread: int = 0
) -> SignalCall:
    """F_SETSIG can make any signal of it, so it is judged as the worst one."""
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
