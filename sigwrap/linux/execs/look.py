"""Gather the facts that an exec is judged by: what the caller asks for, and what that would run."""

from __future__ import annotations

import errno
import os

from sigwrap.bare import NamedTuple
from sigwrap.linux import proc_files
from sigwrap.linux.execs.asked import Asked, Environment, ExecRefused
from sigwrap.linux.execs.commands import DEFAULT_PATH
from sigwrap.linux.execs.executable import Executable
from sigwrap.linux.execs.ours import Ours
from sigwrap.linux.memory import Memory, Unreadable
from sigwrap.linux.paths import Caller, MayWait, path_of
from sigwrap.linux.seccomp import Notification
from sigwrap.mediate.exec_facts import Unseen, not_dumpable, pointing_nowhere
from sigwrap.mediate.facts import WouldFail
from sigwrap.mediate.lineage import Process
from sigwrap.policy.judge.paths import UNTOLD_BELOW

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
    """Look at an exec. Raises MayWait, unless it may wait, in a worker."""
    try:
        tid = notification.tid
        with Memory(tid, may_wait=may_wait) as memory:
            asked = Asked(notification, syscall, memory)
            found = resolve(tid, process.pid, asked, memory, ours, may_wait=may_wait)
            return Seen(asked, found)
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
        return proc_files.link(f"/proc/{tid}/cwd")
    except OSError:
        return ""


def folder_of(tid: int, pid: int, ours: Ours) -> str:
    """Return the working directory; "" if it can't be read without waiting.

    The kernel returns no path longer than a page. Then it is the path of a directory above, with
    UNTOLD_BELOW for each one below that.
    """
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


def resolve(
    tid: int, pid: int, asked: Asked, memory: Memory, ours: Ours, *, may_wait: bool
) -> Executable:
    """Find what an exec would run. Raises Unreadable if the caller's memory is, and MayWait."""

    def search_path() -> bytes:
        path = asked.variable(tid, b"PATH", may_wait=may_wait)
        return DEFAULT_PATH if path is None else path

    def variables_asked() -> list[bytes] | None:
        try:
            return asked.environment(tid, may_wait=may_wait)
        except MayWait:
            return None  # a rule asks for them too late for a worker

    variables = Environment(variables_asked, ours.variables)
    if may_wait:
        variables.read()  # later a rule asks for them in the loop, which must not wait
    return Executable(
        _caller(tid, pid, ours, may_wait=may_wait),
        asked.path,
        lambda: asked.read_argv(memory),
        folder_fd=asked.folder_fd,
        flags=asked.flags,
        search_path=search_path,
        environment=variables,
        ours=ours,
    )


def resolve_replacement(
    tid: int, pid: int, command: str, argv: list[bytes], ours: Ours, *, may_wait: bool
) -> tuple[bytes, Executable]:
    """Find a replacement along sigwrap's own PATH, and return its path as well.

    The caller can change its own PATH, and its mounts, which the call uses as well.
    """
    caller = _caller(tid, pid, ours, may_wait=may_wait)
    word = os.fsencode(command)
    folders = [b""] if b"/" in word else os.environb.get(b"PATH", DEFAULT_PATH).split(b":")
    failure: OSError | ExecRefused = ExecRefused(errno.ENOENT)
    for folder in folders:
        path = os.path.join(folder, word)
        try:
            return path, Executable(caller, path, lambda: (argv, False), ours=ours)
        except (OSError, ExecRefused) as missing:
            failure = missing
    raise failure


def _caller(tid: int, pid: int, ours: Ours, *, may_wait: bool) -> Caller:
    try:
        return Caller(tid, pid, ours.view, may_wait=may_wait)
    except OSError as refusal:
        raise Unreadable from refusal
