"""What a caller asks for and what that would run: the facts that an exec is judged by."""

from __future__ import annotations

import errno
import os

from sigwrap.linux import proc_files
from sigwrap.linux.execs.asked import Asked, ExecRefused
from sigwrap.linux.execs.executable import Executable, resolve
from sigwrap.linux.execs.ours import Ours
from sigwrap.linux.memory import Memory, Unreadable, may_be_served
from sigwrap.linux.paths import Caller, MayWait, path_of
from sigwrap.linux.seccomp import Notification
from sigwrap.mediate.exec_facts import Unseen, not_dumpable, pointing_nowhere
from sigwrap.mediate.facts import WouldFail
from sigwrap.mediate.lineage import Process
from sigwrap.policy.judge.paths import UNTOLD_BELOW
from sigwrap.tuples import NamedTuple

_OUR_SHORTAGE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
_MOST_UNTOLD = 256


class Seen(NamedTuple):
    asked: Asked
    executable: Executable  # holds descriptors, and has to be closed


def look(
    notification: Notification,
    process: Process,
    syscall: str,
    ours: Ours,
    *,
    may_wait: bool = False,
) -> Seen | Unseen | WouldFail:
    """Raises MayWait, unless it may: then it is done aside, and says nothing until it is done."""
    try:
        return _look(notification, process.pid, syscall, ours, may_wait=may_wait)
    except Unreadable as unreadable:
        if isinstance(unreadable.__cause__, PermissionError):
            return not_dumpable(process, syscall)
        return pointing_nowhere(process, syscall)
    except (ExecRefused, OSError) as refusal:
        error = refusal.errno or errno.EACCES
        if error in _OUR_SHORTAGE:
            return Unseen(process, syscall, f"sigwrap: {os.strerror(error)}", errno.EACCES)
        return WouldFail(error)


def look_first(notification: Notification, syscall: str, ours: Ours) -> Seen | WouldFail | None:
    """Before anybody knows whose call it is. None where somebody has to."""
    try:
        return _look(notification, notification.tid, syscall, ours, may_wait=False)
    except (Unreadable, MayWait):
        return None
    except (ExecRefused, OSError) as refusal:
        error = refusal.errno or errno.EACCES
        return None if error in _OUR_SHORTAGE else WouldFail(error)


def _look(
    notification: Notification, pid: int, syscall: str, ours: Ours, *, may_wait: bool
) -> Seen:
    if may_be_served() and not may_wait:
        raise MayWait("its arguments may be in memory that another program serves")
    tid = notification.tid
    with Memory(tid, may_wait=may_wait) as memory:
        asked = Asked(notification, syscall, memory)
        return Seen(asked, resolve(tid, pid, asked, memory, ours, may_wait=may_wait))


def cwd_of(tid: int) -> str:
    try:
        return proc_files.link(f"/proc/{tid}/cwd")
    except OSError:
        return ""


def folder_of(tid: int, pid: int, ours: Ours) -> str:
    """Like cwd_of. Where the path is longer than the kernel tells, it is told of a folder above,
    with UNTOLD_BELOW for each one below that; empty where nobody tells without being waited for."""
    if told := cwd_of(tid):
        return told
    try:
        caller = Caller(tid, pid, ours.view)
        folder = caller.open_folder()
    except OSError:
        return ""
    try:
        for untold in range(_MOST_UNTOLD):
            if told := path_of(folder):
                return told + UNTOLD_BELOW * untold
            above = caller.open_part(folder, b"..")
            os.close(folder)
            folder = above
    except (OSError, MayWait):
        pass
    finally:
        os.close(folder)
    return ""
