"""What is carried out in a caller's place, and never more than the caller could do itself."""

from __future__ import annotations

import errno
import fcntl
import os
import struct

from sigwrap.bare import signal
from sigwrap.calls import F_SETOWN_EX
from sigwrap.linux import pidfd, procfs
from sigwrap.linux.signals.call import SignalCall
from sigwrap.mediate.effects import SignalTarget
from sigwrap.mediate.lineage import Process
from sigwrap.mediate.signal_facts import How

_SI_TKILL = -6


def send(sender: Process, call: SignalCall, target: SignalTarget, number: int) -> None:
    """Raises what the caller is to be told."""
    _check_kernel_would_let(sender.pid, target.pid, number)
    held = pidfd.open_thread(target.thread) if target.thread else os.pidfd_open(target.pid)
    try:
        # Held first, so this is what was judged.
        if not is_still(target) or not _has_its_thread(target):
            raise ProcessLookupError(errno.ESRCH, "it has ended")
        if number in (signal.SIGKILL, signal.SIGSTOP) and _is_init_to(sender.pid, target.pid):
            return  # from inside its namespace nobody kills or stops it; we could
        credentials = procfs.credentials(sender.pid)
        pidfd.send(
            held,
            number,
            sender_pid=sender.pid,
            sender_uid=0 if credentials is None else credentials.real_uid,
            info=_callers_info(call) if number == call.signal else b"",
        )
    finally:
        os.close(held)


def would_fail(sender: Process, call: SignalCall, target: SignalTarget, thread: int) -> int:
    """What the kernel would say to signal 0 if no wall stood there: 0 or an errno."""
    try:
        info = _callers_info(call)
        if info and _says_it_is_the_kernels(info):
            return errno.EPERM
        if thread and procfs.tgid(thread) != target.pid:
            return errno.ESRCH
        os.kill(target.pid, 0)
        _check_kernel_would_let(sender.pid, target.pid, 0)
    except OSError as refusal:
        return refusal.errno or errno.EPERM
    return 0


def set_owner(sender: Process, call: SignalCall, target: SignalTarget | None) -> None:
    """Of what it holds. The kernel remembers who set it, and lets later signals through by that
    user's rights."""
    credentials = procfs.credentials(sender.pid)
    if credentials is None or credentials.effective_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "not the same user")
    if target is None:
        number = 0
    elif call.target < 0 and _number_to(sender, target.pid) != -call.target:
        found = procfs.stat(target.pid)
        number = 0 if found is None else found.pgrp
    elif not _has_its_thread(target):
        raise ProcessLookupError(errno.ESRCH, "no such thread")
    else:
        number = target.thread or target.pid
    fcntl.fcntl(call.held, F_SETOWN_EX, struct.pack("<ii", call.owner_kind, number))


def is_still(target: SignalTarget) -> bool:
    found = procfs.stat(target.pid)
    return found is not None and found.start_time == target.start_time


def _has_its_thread(target: SignalTarget) -> bool:
    return not target.thread or procfs.tgid(target.thread) == target.pid


def _callers_info(call: SignalCall) -> bytes:
    info = call.info
    if info is None:
        raise OSError(errno.EFAULT, "siginfo")
    if not info:
        return b""
    if call.is_i386:  # three ints, and nothing to align what follows
        info = info[:12] + bytes(4) + info[12 : pidfd.SIGINFO_BYTES - 4]
    if call.how is How.NUMBER:  # there the kernel writes the number itself
        info = struct.pack("<i", call.signal) + info[4:]
    return info


def _says_it_is_the_kernels(info: bytes) -> bool:
    (code,) = struct.unpack_from("<i", info, 8)
    return bool(code >= 0 or code == _SI_TKILL)


def _check_kernel_would_let(sender_pid: int, target_pid: int, number: int) -> None:
    """A supervisor that runs as root may do more than its caller."""
    if os.geteuid() != 0:
        return
    sender, target = procfs.credentials(sender_pid), procfs.credentials(target_pid)
    if sender is None or target is None:
        raise ProcessLookupError(errno.ESRCH, "it has ended")
    if sender.can_kill_anybody and _rules_over(sender_pid, target_pid):
        return
    if {sender.real_uid, sender.effective_uid} & {target.real_uid, target.saved_uid}:
        return
    if number == signal.SIGCONT and _same_session(sender_pid, target_pid):
        return
    raise PermissionError(errno.EPERM, "another user's")


def _number_to(sender: Process, pid: int) -> int:
    """How the sender numbers it; 0 where it can't."""
    level = len(procfs.numbers(sender.pid, "NSpid"))
    return next(iter(procfs.numbers(pid, "NSpid")[level - 1 : level]), 0)


def _is_init_to(sender_pid: int, target_pid: int) -> bool:
    numbers = procfs.numbers(target_pid, "NSpid")
    return numbers[1:][-1:] == [1] and len(procfs.numbers(sender_pid, "NSpid")) >= len(numbers)


def _rules_over(sender_pid: int, target_pid: int) -> bool:
    """A capability counts in its own user namespace, and anybody can be root in one of his own."""
    namespace = procfs.user_namespace(sender_pid)
    return namespace in map(procfs.user_namespace, (os.getpid(), target_pid))


def _same_session(one: int, other: int) -> bool:
    first, second = procfs.stat(one), procfs.stat(other)
    return first is not None and second is not None and first.session == second.session
