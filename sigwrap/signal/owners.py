"""Descriptors that signal their owner, and terminals, whose keys signal a process group.

Another thread of the caller can swap a descriptor. So the supervisor copies it, judges the copy,
and makes the call on that.
"""

from __future__ import annotations

import _thread
import errno
import fcntl
import os
import stat
import struct
from collections.abc import Callable

from sigwrap.bare import TYPE_CHECKING, signal
from sigwrap.calls import F_SETOWN_EX, F_SETSIG, FIOASYNC, O_ASYNC
from sigwrap.errors import KernelError
from sigwrap.kernel import descriptors, procfs, signals
from sigwrap.kernel.file_state import kind_of
from sigwrap.kernel.libc import libc
from sigwrap.session.effects import ChangeDescriptor, SignalTarget, Unrecorded, would_fail
from sigwrap.session.lineage import Process
from sigwrap.signal.call import F_OWNER_PGRP, F_OWNER_PID, F_OWNER_TID, has_its_thread
from sigwrap.signal.facts import (
    NOT_OWN_TERMINAL,
    OWN,
    UNRESOLVED_TARGET,
    CallKind,
    RefusedCall,
    SignalAim,
    SignalCall,
    TargetGroup,
)

if TYPE_CHECKING:
    from sigwrap.signal.targets import Targets

_F_GETOWN_EX = 16
_CLONE_FILES = 0x400
_TIOCGDEV = 0x80045432
_TIOCGPTN = 0x80045430
_ALIASES = (os.makedev(5, 0), os.makedev(5, 1))  # /dev/tty, /dev/console


def aim_of(
    targets: Targets, tid: int, sender: Process, call: SignalCall
) -> tuple[SignalCall, SignalAim]:
    """Return the target of a call on a descriptor, and the call with a copy of the descriptor."""
    if call.kind is CallKind.FOREGROUND:
        return _gets_terminal(targets, tid, sender, call)
    try:
        call = call._replace(held=descriptors.duplicate(tid, call.descriptor))
    except (KernelError, OSError) as refusal:
        is_bad = refusal.errno == errno.EBADF
        return call, would_fail(errno.EBADF) if is_bad else UNRESOLVED_TARGET
    try:
        if call.kind is CallKind.TERMINAL:
            return call, _takes_terminal(targets, call.held)
        return _signals_owner(targets, sender, call)
    except BaseException:
        descriptors.let_go(call.held)
        raise


def _gets_terminal(
    targets: Targets, tid: int, sender: Process, call: SignalCall
) -> tuple[SignalCall, SignalAim]:
    """Return the target of TIOCSPGRP. Another thread can change the group's number in memory, so
    the supervisor gives the terminal, which is its own as well, to the judged one."""
    found = procfs.stat(sender.pid)
    if found is None or found.session != targets.own_session:
        return call, OWN  # the kernel requires a group of the caller's own terminal session
    aim = targets.own_group(sender, -call.target)
    _, foreground = procfs.terminal(sender.pid) or (0, 0)
    is_in_front = found.pgrp == foreground or signals.is_in(
        tid, signal.SIGTTOU, b"SigBlk", b"SigIgn"
    )
    if aim is not OWN or not is_in_front:
        return call, aim  # the kernel stops a background job that wants the terminal
    if not _is_our_terminal(tid, call.descriptor):
        return call, would_fail(errno.ENOTTY)
    group = targets.our_group(sender, -call.target) or 0
    return call._replace(target=-group), ChangeDescriptor(None, Unrecorded.STAYS_INSIDE)


def _takes_terminal(targets: Targets, held: int) -> SignalAim:
    """Return the target of TIOCSCTTY, which takes a terminal from others with CAP_SYS_ADMIN."""
    terminal = _terminal_number(held)
    if os.geteuid() != 0 or not terminal:
        return OWN
    users = [pid for pid in procfs.all_pids() if (procfs.terminal(pid) or (0, 0))[0] == terminal]
    return OWN if all(map(targets.is_inside, users)) else RefusedCall(NOT_OWN_TERMINAL)


def _signals_owner(
    targets: Targets, sender: Process, call: SignalCall
) -> tuple[SignalCall, SignalAim]:
    """Return the target of O_ASYNC or F_SETSIG: the owner, which may be from before the descriptor
    came here. For O_ASYNC, the call gets the owner that the kernel would set."""
    kind, number = struct.unpack("<ii", fcntl.fcntl(call.held, _F_GETOWN_EX, bytes(8)))
    is_async = call.kind is CallKind.ASYNC and call.flags & O_ASYNC
    if not number and is_async and _may_set_an_owner(call.held):
        kind, number = F_OWNER_PID, sender.pid
        terminal = _terminal_number(call.held)
        if terminal and not _is_master(call.held) and (group := _foreground_group(terminal)):
            kind, number = F_OWNER_PGRP, group
        call = call._replace(target=-number if kind == F_OWNER_PGRP else number)
    owner: SignalTarget | TargetGroup | None = None
    if number and kind == F_OWNER_PGRP:
        members = targets.of_group(sender, number)
        owner = TargetGroup(tuple(members)) if members else None
    elif number:
        owner = targets.of_pid(sender, number)
    return call, owner or ChangeDescriptor(None, Unrecorded.STAYS_INSIDE)


def _is_our_terminal(tid: int, fd: int) -> bool:
    """Return whether descriptor `fd` of `tid` is the terminal that controls both it and sigwrap."""
    ours = procfs.controlling_terminal(os.getpid())
    try:
        kind, major, minor = kind_of(b"/proc/%d/fd/%d" % (tid, fd))
    except OSError:
        return False
    return (
        kind == stat.S_IFCHR
        and os.makedev(major, minor) in (ours, *_ALIASES)
        and ours == procfs.controlling_terminal(tid)
    )


def _terminal_number(fd: int) -> int:
    """Return a terminal's device number, as in /proc/PID/stat; 0 if `fd` is no terminal."""
    try:
        return int(struct.unpack("I", fcntl.ioctl(fd, _TIOCGDEV, bytes(4)))[0])
    except OSError:
        return 0


def _is_master(fd: int) -> bool:
    """Return whether it is the end of a pseudo-terminal that a terminal emulator holds."""
    try:
        fcntl.ioctl(fd, _TIOCGPTN, bytes(4))
    except OSError:
        return False
    return True


def _may_set_an_owner(fd: int) -> bool:
    """Return whether it is a device: some drivers make the caller the owner if there is none."""
    return kind_of(b"/proc/self/fd/%d" % fd)[0] == stat.S_IFCHR


def _foreground_group(terminal: int) -> int:
    """Return the foreground group of any process that the terminal controls; 0 if there is none."""
    for pid in procfs.all_pids():
        controlling, group = procfs.terminal(pid) or (0, 0)
        if controlling == terminal:
            return max(group, 0)
    return 0


def change(sender: Process, call: SignalCall, target: SignalTarget | None) -> None:
    """Make the call on the descriptor that it holds. `target` is the judged owner."""
    if call.kind is CallKind.SIGNAL_OF_OWNER:
        fcntl.fcntl(call.held, F_SETSIG, call.flags)
    elif call.kind is CallKind.ASYNC:
        _set_async(sender, call)
    else:
        _set_owner(sender, call, target)


def _set_owner(sender: Process, call: SignalCall, target: SignalTarget | None) -> None:
    _check_is_our_user(sender)
    kind, number = F_OWNER_PID, 0
    if call.target < 0:
        kind, number = F_OWNER_PGRP, -call.target
    elif target is not None:
        if not has_its_thread(target):
            raise ProcessLookupError(errno.ESRCH, "no such thread")
        kind = F_OWNER_TID if target.thread else F_OWNER_PID
        number = target.thread or target.pid
    fcntl.fcntl(call.held, F_SETOWN_EX, struct.pack("<ii", kind, number))


def _set_async(sender: Process, call: SignalCall) -> None:
    if call.target or call.flags & os.O_NOATIME:
        _check_is_our_user(sender)
    if call.target:  # first, or the kernel would choose an owner that was not judged
        kind = F_OWNER_PGRP if call.target < 0 else F_OWNER_PID
        fcntl.fcntl(call.held, F_SETOWN_EX, struct.pack("<ii", kind, abs(call.target)))
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
    rights = procfs.rights(sender.pid)
    if rights is None or rights.effective_uid != os.geteuid():
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
