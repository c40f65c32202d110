"""Decodes a mediated call, and sends a signal for its caller, with no more rights than it has."""

from __future__ import annotations

import errno
import os
import struct

from sigwrap import calls
from sigwrap.bare import signal
from sigwrap.errors import InternalError
from sigwrap.kernel import procfs, signals
from sigwrap.kernel.memory import Memory, Unreadable
from sigwrap.kernel.seccomp import Notification, int32
from sigwrap.kernel.signals import SIGINFO_BYTES
from sigwrap.session.effects import Continue, Fail, SignalTarget, would_fail
from sigwrap.session.lineage import Process
from sigwrap.signal.facts import EVERY_PROCESS, REACHES_NONE, CallKind, SignalCall

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

_SCHED_OTHER, _SCHED_BATCH, _SCHED_IDLE = 0, 3, 5
_SCHED_RESET_ON_FORK = 0x40000000
_IOPRIO_CLASS_SHIFT, _IOPRIO_CLASS_MASK, _IOPRIO_CLASS_RT = 13, 7, 1
_SHELLS = frozenset("sh bash rbash dash ash busybox zsh ksh mksh yash posh fish".split())


class AnswerKnown(Exception):
    """The arguments show the answer, whichever processes there are.

    The supervisor returns a failure itself: the kernel would read the caller's memory again, and
    another thread may have changed it.
    """

    def __init__(self, answer: Continue | Fail) -> None:
        super().__init__(answer)
        self.answer = answer


def read_words(notification: Notification, syscall: str, *, may_wait: bool) -> bytes | None:
    """Return the memory that the call points to, None if it cannot be read.

    It is empty if the call uses registers alone.
    """
    request = notification.argument1 & 0xFFFFFFFF
    match syscall:
        case "rt_sigqueueinfo" | "pidfd_send_signal":
            address, size = notification.argument2, SIGINFO_BYTES
        case "rt_tgsigqueueinfo":
            address, size = notification.argument3, SIGINFO_BYTES
        case "ioctl" if request in _POINT_TO_INT:
            address, size = notification.argument2, 4
        case "fcntl" | "fcntl64" if request == calls.F_SETOWN_EX:
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

    Raises AnswerKnown.
    """
    first, second, third = map(int32, notification[6:9])
    match syscall:
        case "kill" | "tkill" | "rt_sigqueueinfo":
            if syscall != "kill" and first <= 0:
                raise AnswerKnown(REACHES_NONE)
            thread = first if syscall == "tkill" else 0
            info = _siginfo(notification, words, second)
            return SignalCall(syscall, CallKind.NUMBER, second, first, thread, info=info)
        case "tgkill" | "rt_tgsigqueueinfo":
            # The kernel requires that the thread belongs to this process, which is the target.
            if first <= 0 or second <= 0:
                raise AnswerKnown(REACHES_NONE)
            info = _siginfo(notification, words, third)
            return SignalCall(syscall, CallKind.NUMBER, third, first, second, info=info)
        case "pidfd_send_signal":
            flags = notification.argument3 & 0xFFFFFFFF
            is_self = first in (PIDFD_SELF_THREAD, _PIDFD_SELF_PROCESS)
            if flags not in _PIDFD_FLAGS or (first < 0 and not is_self):
                raise AnswerKnown(REACHES_NONE)  # EINVAL or EBADF for any descriptors
            kind = CallKind.ITSELF if is_self else CallKind.PIDFD
            info = _siginfo(notification, words)
            return SignalCall(syscall, kind, second, first, flags=flags, info=info)
        case "ptrace" if notification.argument0 & 0xFFFFFFFF == calls.PTRACE_TRACEME:
            return SignalCall(syscall, CallKind.TRACED_BY_PARENT, signal.SIGKILL, 0)
        case "ptrace":
            return _on_another(syscall, CallKind.TRACE, signal.SIGKILL, second)
        case "prlimit64":
            return _on_another(syscall, CallKind.CHANGE, signal.SIGKILL, first)
        case _ if syscall in _SLOWING:
            return _on_another(syscall, CallKind.CHANGE, signal.SIGSTOP, first, second)
        case "process_vm_readv" | "process_vm_writev":
            if not notification.argument2 or not notification.argument4:
                raise AnswerKnown(REACHES_NONE)  # nothing is copied, and no process is looked up
            return _on_another(syscall, CallKind.TRACE, signal.SIGKILL, first)
        case "perf_event_open":
            if notification.argument4 & calls.PERF_FLAG_PID_CGROUP or second < 0:
                return SignalCall(syscall, CallKind.CHANGE, signal.SIGKILL, EVERY_PROCESS)
            return SignalCall(syscall, CallKind.TRACE, signal.SIGKILL, second)
        case "setpriority" | "ioprio_set":
            which = first - (syscall == "ioprio_set")  # ioprio_set counts from 1
            target = EVERY_PROCESS if which == calls.PRIO_USER else second
            if target < 0 and which != calls.PRIO_USER:
                raise AnswerKnown(REACHES_NONE)
            if which == calls.PRIO_PGRP:
                target = -target
            return SignalCall(syscall, CallKind.CHANGE, signal.SIGSTOP, target, value=third)
        case "setpgid":
            if first < 0 or second <= 0 or first == second:
                raise AnswerKnown(REACHES_NONE)  # EINVAL, or a group that the process itself leads
            return SignalCall(syscall, CallKind.JOIN, signal.SIGTTIN, -second, thread=first)
        case "ioctl":
            return _ioctl(syscall, first, notification.argument1 & 0xFFFFFFFF, words)
        case "fcntl" | "fcntl64":
            return _fcntl(syscall, first, notification.argument1 & 0xFFFFFFFF, third, words)
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


def _on_another(
    syscall: str, kind: CallKind, number: int, target: int, value: int = 0
) -> SignalCall:
    if target <= 0:
        raise AnswerKnown(REACHES_NONE)
    return SignalCall(syscall, kind, number, target, value=value)


def _ioctl(syscall: str, descriptor: int, request: int, words: bytes | None) -> SignalCall:
    match request:
        case calls.FIOSETOWN | calls.SIOCSPGRP:
            (target,) = _ints(words)
            if target == _LOWEST:
                raise AnswerKnown(would_fail(errno.EINVAL))
            return _owner(syscall, CallKind.OWNER_IN_MEMORY, target, descriptor)
        case calls.FIOASYNC:
            (on,) = _ints(words)
            return _async(syscall, descriptor, calls.O_ASYNC if on else 0)
        case calls.TIOCSPGRP:
            (group,) = _ints(words)
            if group < 0:
                raise AnswerKnown(would_fail(errno.EINVAL))
            kind, number = CallKind.FOREGROUND, signal.SIGTTIN
            return SignalCall(syscall, kind, number, -group, descriptor=descriptor)
        case calls.TIOCSCTTY:
            kind, number = CallKind.TERMINAL, signal.SIGHUP
            return SignalCall(syscall, kind, number, 0, descriptor=descriptor)
        case _:
            raise _unknown(syscall)


def _fcntl(
    syscall: str, descriptor: int, command: int, value: int, words: bytes | None
) -> SignalCall:
    match command:
        case calls.F_SETOWN:
            if value in (0, _LOWEST):
                raise AnswerKnown(REACHES_NONE)  # clears the owner, or EINVAL
            return _owner(syscall, CallKind.OWNER, value, descriptor)
        case calls.F_SETOWN_EX:
            kind, owner = _ints(words)
            if kind not in (F_OWNER_TID, F_OWNER_PID, F_OWNER_PGRP):
                raise AnswerKnown(would_fail(errno.EINVAL))
            if owner < 0:
                raise AnswerKnown(would_fail(errno.ESRCH))
            target = -owner if kind == F_OWNER_PGRP else owner
            thread = owner if kind == F_OWNER_TID else 0
            return _owner(syscall, CallKind.OWNER_IN_MEMORY, target, descriptor, thread)
        case calls.F_SETSIG:
            kind_of_call, number = CallKind.SIGNAL_OF_OWNER, value or signal.SIGIO
            return SignalCall(syscall, kind_of_call, number, 0, descriptor=descriptor, flags=value)
        case calls.F_SETFL:
            return _async(syscall, descriptor, value & 0xFFFFFFFF)
        case _:
            raise _unknown(syscall)


def _async(syscall: str, descriptor: int, flags: int) -> SignalCall:
    return SignalCall(
        syscall, CallKind.ASYNC, signal.SIGKILL, 0, descriptor=descriptor, flags=flags
    )


def _owner(
    syscall: str, kind: CallKind, target: int, descriptor: int, thread: int = 0
) -> SignalCall:
    """Decode as SIGKILL, the most severe signal that F_SETSIG could choose."""
    return SignalCall(syscall, kind, signal.SIGKILL, target, thread, descriptor)


def _ints(words: bytes | None) -> list[int]:
    if words is None:
        raise AnswerKnown(would_fail(errno.EFAULT))
    return memoryview(words).cast("i").tolist()


def _unknown(syscall: str) -> InternalError:
    return InternalError(f"the filter handed over an unexpected use of {syscall}")


def send(sender: Process, call: SignalCall, target: SignalTarget, number: int) -> None:
    """Send a signal. Raises the OSError that the caller gets."""
    if call.info is None:
        raise OSError(errno.EFAULT, "siginfo")
    _check_kernel_would_let(sender.pid, target.pid, number)
    held = signals.open_thread(target.thread) if target.thread else os.pidfd_open(target.pid)
    try:
        # Checked after the pidfd is open, so the pidfd is the judged process.
        if not is_still(target) or not has_its_thread(target):
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


def probe(sender: Process, target: SignalTarget, thread: int) -> int:
    """Return the errno that signal 0 would get without Landlock, 0 for success."""
    try:
        if thread and procfs.tgid(thread) != target.pid:
            return errno.ESRCH
        os.kill(target.pid, 0)
        _check_kernel_would_let(sender.pid, target.pid, 0)
    except OSError as refusal:
        return refusal.errno or errno.EPERM
    return 0


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


def _is_a_systems_shell(pid: int) -> bool:
    """Return whether the process is a shell that root owns. Other programs may be agents."""
    exe = f"/proc/{pid}/exe"
    try:
        name = procfs.link(exe).rpartition("/")[2]
        return name in _SHELLS and procfs.file_status(exe).st_uid == 0
    except OSError:
        return False


def is_still(target: SignalTarget) -> bool:
    """Return whether the pid still belongs to the process that was judged."""
    found = procfs.stat(target.pid)
    return found is not None and found.start_time == target.start_time


def has_its_thread(target: SignalTarget) -> bool:
    return not target.thread or procfs.tgid(target.thread) == target.pid


def _check_kernel_would_let(sender_pid: int, target_pid: int, number: int) -> None:
    """Raise if the kernel would refuse the caller. A supervisor that is root may do more."""
    if os.geteuid() != 0:
        return
    sender, target = procfs.credentials(sender_pid), procfs.credentials(target_pid)
    if sender is None or target is None:
        raise ProcessLookupError(errno.ESRCH, "it has ended")
    if sender.can_kill_any:
        # Capabilities count in one user namespace, and any process can make one where it is root.
        namespace = procfs.user_namespace(sender_pid)
        if namespace in map(procfs.user_namespace, (os.getpid(), target_pid)):
            return
    if {sender.real_uid, sender.effective_uid} & {target.real_uid, target.saved_uid}:
        return
    if number == signal.SIGCONT:
        one, other = procfs.stat(sender_pid), procfs.stat(target_pid)
        if one is not None and other is not None and one.session == other.session:
            return
    raise PermissionError(errno.EPERM, "another user's")


def _is_init_to(sender_pid: int, target_pid: int) -> bool:
    numbers = procfs.numbers(target_pid, "NSpid")
    return numbers[1:][-1:] == [1] and len(procfs.numbers(sender_pid, "NSpid")) >= len(numbers)
