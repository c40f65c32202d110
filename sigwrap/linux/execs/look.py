"""What a caller asks for and what that would run: the facts that an exec is judged by."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping

from sigwrap.linux.execs.executable import Asked, ExecRefused, Executable, resolve
from sigwrap.linux.memory import Memory, Unreadable
from sigwrap.linux.paths import Place
from sigwrap.linux.seccomp import Notification
from sigwrap.mediate.exec import Unseen, not_dumpable, pointing_nowhere
from sigwrap.mediate.facts import WouldFail
from sigwrap.mediate.lineage import Process
from sigwrap.tuples import NamedTuple

_OUR_SHORTAGE = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})


class Seen(NamedTuple):
    asked: Asked
    executable: Executable  # holds descriptors, and has to be closed


def look(
    notification: Notification,
    process: Process,
    syscall: str,
    our_root: Place,
    own: Mapping[str, bytes],
) -> Seen | Unseen | WouldFail:
    tid = notification.tid
    try:
        with Memory(tid) as memory:
            asked = Asked(notification, syscall, memory)
            return Seen(asked, resolve(tid, process.pid, asked, memory, our_root, own))
    except Unreadable as unreadable:
        if isinstance(unreadable.__cause__, PermissionError):
            return not_dumpable(process, syscall)
        return pointing_nowhere(process, syscall)
    except (ExecRefused, OSError) as refusal:
        error = refusal.errno or errno.EACCES
        if error in _OUR_SHORTAGE:
            return Unseen(process, syscall, f"sigwrap: {os.strerror(error)}", errno.EACCES)
        return WouldFail(error)


def cwd_of(tid: int) -> str:
    try:
        return os.readlink(f"/proc/{tid}/cwd")
    except OSError:
        return ""
