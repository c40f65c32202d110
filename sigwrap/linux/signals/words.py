"""What a signal call's pointer leads to, in its caller's memory."""

from __future__ import annotations

from sigwrap import calls
from sigwrap.linux.memory import Memory, Unreadable
from sigwrap.linux.pidfd import SIGINFO_BYTES
from sigwrap.linux.seccomp import Notification

_OF_ONE_INT = (calls.FIOSETOWN, calls.SIOCSPGRP, calls.FIOASYNC, calls.TIOCSPGRP)

Place = tuple[int, int]  # an address, and how many bytes


def pointed_at(notification: Notification, syscall: str) -> Place | None:
    """None for a call that asks by its registers alone."""
    match syscall:
        case "rt_sigqueueinfo" | "pidfd_send_signal":
            address = notification.argument2
            return (address, SIGINFO_BYTES) if address else None
        case "rt_tgsigqueueinfo":
            address = notification.argument3
            return (address, SIGINFO_BYTES) if address else None
        case "prlimit64":
            return notification.argument2, 16
        case "ioctl" if notification.argument1 & 0xFFFFFFFF in _OF_ONE_INT:
            return notification.argument2, 4
        case "fcntl" | "fcntl64" if notification.argument1 & 0xFFFFFFFF == calls.F_SETOWN_EX:
            return notification.argument2, 8
        case _:
            return None


def read(tid: int, place: Place, *, may_wait: bool = False) -> bytes | None:
    """None where it can't be read."""
    try:
        with Memory(tid, may_wait=may_wait) as memory:
            return memory.block(*place)
    except Unreadable:
        return None
