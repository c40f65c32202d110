"""Sends signals and sets owners for a caller, with no more rights than it has."""

from __future__ import annotations

import _thread
import errno
import fcntl
import os
import struct
from collections.abc import Callable

from sigwrap.bare import signal
from sigwrap.calls import F_SETOWN_EX, F_SETSIG, FIOASYNC, O_ASYNC
from sigwrap.kernel import procfs, signals
from sigwrap.kernel.libc import libc
from sigwrap.session.effects import SignalTarget
from sigwrap.session.lineage import Process
from sigwrap.signal.call import SignalCall
from sigwrap.signal.facts import How

_SI_TKILL = -6
_F_GETOWN_EX = 16
_CLONE_FILES = 0x400

_SCHED_OTHER, _SCHED_BATCH, _SCHED_IDLE = 0, 3, 5
_SCHED_RESET_ON_FORK = 0x40000000
_IOPRIO_CLASS_SHIFT, _IOPRIO_CLASS_MASK, _IOPRIO_CLASS_RT = 13, 7, 1
_SHELLS = frozenset("sh bash rbash dash ash busybox zsh ksh mksh yash posh fish".split())


def send(sender: Process, call: SignalCall, target: SignalTarget, number: int) -> None:
    """Send a signal. Raises the OSError that the caller gets."""
    if call.info is None:
        raise OSError(errno.EFAULT, "siginfo")
    _check_kernel_would_let(sender.pid, target.pid, number)
    held = signals.open_thread(target.thread) if target.thread else os.pidfd_open(target.pid)
    try:
        # Checked after the pidfd is open, so the pidfd is the judged process.
        if not is_still(target) or not _has_its_thread(target):
            raise ProcessLookupError(errno.ESRCH, "it has ended")
        if number in (signal.SIGKILL, signal.SIGSTOP) and _is_init_to(sender.pid, target.pid):
            return  # the kernel would protect a namespace's init from its own namespace
        credentials = procfs.credentials(sender.pid)
        signals.send(
            held,
            number,
            sender_pid=sender.pid,
            sender_uid=0 if credentials is None else credentials.real_uid,
            info=call.info if number == call.signal else b"",
        )
    finally:
        os.close(held)


def probe(sender: Process, call: SignalCall, target: SignalTarget, thread: int) -> int:
    """Return the errno that signal 0 would get without Landlock, 0 for success."""
    if call.info is None:
        return errno.EFAULT
    if call.info and _claims_the_kernel_sent_it(call.info):
        return errno.EPERM
    try:
        if thread and procfs.tgid(thread) != target.pid:
            return errno.ESRCH
        os.kill(target.pid, 0)
        _check_kernel_would_let(sender.pid, target.pid, 0)
    except OSError as refusal:
        return refusal.errno or errno.EPERM
    return 0


def set_owner(sender: Process, call: SignalCall, target: SignalTarget | None) -> None:
    """Set the owner of the descriptor that the call holds."""
    _check_is_our_user(sender)
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


def owner(fd: int) -> tuple[int, int]:
    """Return the kind and the number of a descriptor's owner; the number is 0 if there is none."""
    kind, number = struct.unpack("<ii", fcntl.fcntl(fd, _F_GETOWN_EX, bytes(8)))
    return kind, number


def set_async(sender: Process, call: SignalCall) -> None:
    """Make the descriptor signal its owner, or choose the signal."""
    if call.how is How.SIGNAL_OF_OWNER:
        fcntl.fcntl(call.held, F_SETSIG, call.flags)
        return
    if call.target or call.flags & os.O_NOATIME:
        _check_is_our_user(sender)
    if call.target:  # first, or the kernel would choose an owner that was not judged
        fcntl.fcntl(call.held, F_SETOWN_EX, struct.pack("<ii", call.owner_kind, call.target))
    if call.syscall == "ioctl":
        on = struct.pack("<i", 1 if call.flags & O_ASYNC else 0)
        _as_number(call.held, call.descriptor, lambda fd: fcntl.ioctl(fd, FIOASYNC, on))
    else:
        _as_number(
            call.held, call.descriptor, lambda fd: fcntl.fcntl(fd, fcntl.F_SETFL, call.flags)
        )


def _check_is_our_user(sender: Process) -> None:
    """Raise for another user's caller.

    The kernel checks later signals by the rights of the user that set the owner. And O_NOATIME is
    for the file's own user.
    """
    credentials = procfs.credentials(sender.pid)
    if credentials is None or credentials.effective_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "not the same user")


def _as_number(held: int, number: int, run: Callable[[int], object]) -> None:
    """Run with the caller's descriptor number, which the kernel reports in the siginfo.

    A thread with its own descriptor table does that.
    """
    done = _thread.allocate_lock()
    done.acquire()
    failed: list[OSError] = []

    def in_thread() -> None:
        try:
            if libc.unshare(_CLONE_FILES) != 0:
                run(held)  # a container may forbid unshare; the siginfo then has our number
                return
            os.dup2(held, number)
            run(number)
            for each in {held, number}:  # now: the caller's own close must be the last
                os.close(each)
        except OSError as refusal:
            failed.append(refusal)
        finally:
            done.release()

    _thread.start_new_thread(in_thread, ())
    done.acquire()
    if failed:
        raise failed[0]


def may_change(sender: Process, call: SignalCall, target: SignalTarget) -> bool:
    """Return whether the call may change its parent shell, as in `renice -p $$`."""
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
        case _:
            return False


def is_still(target: SignalTarget) -> bool:
    """Return whether the pid still belongs to the process that was judged."""
    found = procfs.stat(target.pid)
    return found is not None and found.start_time == target.start_time


def _has_its_thread(target: SignalTarget) -> bool:
    return not target.thread or procfs.tgid(target.thread) == target.pid


def _claims_the_kernel_sent_it(info: bytes) -> bool:
    (code,) = struct.unpack_from("<i", info, 8)
    return bool(code >= 0 or code == _SI_TKILL)


def _check_kernel_would_let(sender_pid: int, target_pid: int, number: int) -> None:
    """Raise if the kernel would refuse the caller. A supervisor that is root may do more."""
    if os.geteuid() != 0:
        return
    sender, target = procfs.credentials(sender_pid), procfs.credentials(target_pid)
    if sender is None or target is None:
        raise ProcessLookupError(errno.ESRCH, "it has ended")
    if sender.can_kill_any and _rules_over(sender_pid, target_pid):
        return
    if {sender.real_uid, sender.effective_uid} & {target.real_uid, target.saved_uid}:
        return
    if number == signal.SIGCONT and _same_session(sender_pid, target_pid):
        return
    raise PermissionError(errno.EPERM, "another user's")


def _number_to(sender: Process, pid: int) -> int:
    """Return the pid in the sender's namespace, 0 if it has none there."""
    level = len(procfs.numbers(sender.pid, "NSpid"))
    return next(iter(procfs.numbers(pid, "NSpid")[level - 1 : level]), 0)


def _is_init_to(sender_pid: int, target_pid: int) -> bool:
    numbers = procfs.numbers(target_pid, "NSpid")
    return numbers[1:][-1:] == [1] and len(procfs.numbers(sender_pid, "NSpid")) >= len(numbers)


def _rules_over(sender_pid: int, target_pid: int) -> bool:
    """Return whether the sender's capabilities count for the target.

    They count in one user namespace only, and any process can make one in which it is root.
    """
    namespace = procfs.user_namespace(sender_pid)
    return namespace in map(procfs.user_namespace, (os.getpid(), target_pid))


def _same_session(one: int, other: int) -> bool:
    first, second = procfs.stat(one), procfs.stat(other)
    return first is not None and second is not None and first.session == second.session


def _is_a_systems_shell(pid: int) -> bool:
    """Return whether the process is a shell that root owns. Other programs may be agents."""
    exe = f"/proc/{pid}/exe"
    try:
        name = procfs.link(exe).rpartition("/")[2]
        return name in _SHELLS and procfs.file_status(exe).st_uid == 0
    except OSError:
        return False
