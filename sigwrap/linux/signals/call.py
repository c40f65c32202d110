"""What a mediated call asks for: which signal, to whom."""

from __future__ import annotations

import errno
import signal
from enum import Enum
from typing import NamedTuple

from sigwrap.linux import syscalls
from sigwrap.linux.memory import Memory, Unreadable
from sigwrap.linux.seccomp import Request, int32

F_OWNER_TID = 0
F_OWNER_PID = 1
F_OWNER_PGRP = 2

# pidfd_send_signal's flags, Linux 6.9
PIDFD_SIGNAL_THREAD = 1
PIDFD_SIGNAL_PROCESS_GROUP = 4
_PIDFD_FLAGS = (0, PIDFD_SIGNAL_THREAD, 2, PIDFD_SIGNAL_PROCESS_GROUP)
PIDFD_SELF_THREAD = -10000  # Linux 6.15, and one below it the thread's process
_PIDFD_SELF = (PIDFD_SELF_THREAD, -10001)


class How(Enum):
    """By what the call names its target, which decides how it may go on."""

    NUMBER = "number"  # a register: continuing is safe
    PIDFD = "pidfd"  # a descriptor, which another thread can swap
    ITSELF = "itself"  # the caller by a magic number for a pidfd: a register too
    OWNER = "owner"  # whom the kernel will signal for a descriptor; the number is a register
    OWNER_IN_MEMORY = "owner in memory"  # the same, but another thread can rewrite it
    TRACE = "trace"
    NOBODY = "nobody"  # it chooses the signal that an owner will get


class Call(NamedTuple):
    syscall: str
    how: How
    signal: int
    target: int  # above 0 a process, below a group, 0 the caller's group; or the pidfd
    thread: int = 0  # which one of the target's is meant, as the caller numbers it
    descriptor: int = -1  # whose owner is set
    owner_kind: int = F_OWNER_PID
    flags: int = 0
    info_at: int = 0  # a siginfo of the caller's own making
    is_i386: bool = False  # so is its siginfo


class NoTarget(Exception):
    """By its registers the call can reach nobody: the kernel can have it."""


class Refused(Exception):
    """As the kernel would, with this errno; but it must not look for itself: by then there may be
    something else in the caller's memory."""

    def __init__(self, error: int) -> None:
        super().__init__(error)
        self.errno = error


def read_call(request: Request) -> Call:
    name = syscalls.NAMES[request.arch][request.number]
    match name:
        case "kill" | "tkill" | "rt_sigqueueinfo":
            target, number = int32(request.argument0), int32(request.argument1)
            if name != "kill" and target <= 0:
                raise NoTarget
            thread = target if name == "tkill" else 0
            return Call(syscall=name, how=How.NUMBER, signal=number, target=target, thread=thread)
        case "tgkill" | "rt_tgsigqueueinfo":
            # The kernel demands that the thread be of this process, so the process is the target.
            target, number = int32(request.argument0), int32(request.argument2)
            thread = int32(request.argument1)
            if target <= 0 or thread <= 0:
                raise NoTarget
            return Call(syscall=name, how=How.NUMBER, signal=number, target=target, thread=thread)
        case "pidfd_send_signal":
            return _pidfd(name, request)
        case "ptrace":
            target = int32(request.argument1)
            if target <= 0:
                raise NoTarget
            return Call(syscall=name, how=How.TRACE, signal=signal.SIGKILL, target=target)
        case "ioctl":
            target = _words(request, 1)[0]
            return _owner(name, How.OWNER_IN_MEMORY, target, request)
        case _:
            return _fcntl(name, request)


def _pidfd(name: str, request: Request) -> Call:
    pidfd, flags = int32(request.argument0), request.argument3 & 0xFFFFFFFF
    if flags not in _PIDFD_FLAGS or (pidfd < 0 and pidfd not in _PIDFD_SELF):
        raise NoTarget  # EINVAL or EBADF, whatever the descriptors are
    return Call(
        syscall=name,
        how=How.PIDFD if pidfd >= 0 else How.ITSELF,
        signal=int32(request.argument1),
        target=pidfd,
        info_at=request.argument2,
        flags=flags,
        is_i386=request.arch == syscalls.AUDIT_ARCH_I386,
    )


def _fcntl(name: str, request: Request) -> Call:
    match request.argument1 & 0xFFFFFFFF:
        case syscalls.F_SETOWN:
            target = int32(request.argument2)
            if target == 0:
                raise NoTarget  # nobody owns it any more
            return _owner(name, How.OWNER, target, request)
        case syscalls.F_SETOWN_EX:
            kind, owner = _words(request, 2)
            if kind not in (F_OWNER_TID, F_OWNER_PID, F_OWNER_PGRP):
                raise Refused(errno.EINVAL)
            if owner < 0:
                raise Refused(errno.ESRCH)
            target = -owner if kind == F_OWNER_PGRP else owner
            thread = owner if kind == F_OWNER_TID else 0
            return _owner(name, How.OWNER_IN_MEMORY, target, request, thread)
        case _:
            number = int32(request.argument2)
            if number == 0:
                raise NoTarget  # back to SIGIO
            return Call(syscall=name, how=How.NOBODY, signal=number, target=0)


def _owner(name: str, how: How, target: int, request: Request, thread: int = 0) -> Call:
    """F_SETSIG can make any signal of it, so it is judged as the worst one."""
    kind = F_OWNER_PGRP if target < 0 else F_OWNER_TID if thread else F_OWNER_PID
    return Call(
        syscall=name,
        how=how,
        signal=signal.SIGKILL,
        target=target,
        thread=thread,
        descriptor=int32(request.argument0),
        owner_kind=kind,
    )


def _words(request: Request, count: int) -> list[int]:
    try:
        with Memory(request.tid) as memory:
            return memory.int32s(request.argument2, count)
    except Unreadable as nothing:
        raise Refused(errno.EFAULT) from nothing
