"""Numbers that a process in another pid namespace uses, in ours."""

from __future__ import annotations

import errno
import os
from fcntl import ioctl

from sigwrap.linux import proc_files, procfs

_NS_GET_PARENT = 0xB702
_NS_GET_PID_FROM_PIDNS = 0x8004B706


def level(pid: int) -> str:
    """How far below /proc's own namespace it lives: all that is seen there is in that one or below,
    so with the same level as ours comes the same namespace. A process that is not dumpable hides
    its ns/pid, but not this."""
    return str(len(procfs.numbers(pid, "NSpid")))


def namespace(pid: int) -> str:
    try:
        return proc_files.link(f"/proc/{pid}/ns/pid")
    except OSError:
        return ""


def process(sender: int, number: int) -> int | None:
    """Our number of what `sender` calls `number`, a process or a thread."""
    try:
        return _translated(sender, number)
    except OSError as refusal:
        return _find(sender, number, "NSpid") if refusal.errno == errno.ENOTTY else None


def group(sender: int, number: int) -> int | None:
    try:  # mostly it has its leader
        return _translated(sender, number)
    except OSError:
        return _find(sender, number, "NSpgid")


def _translated(sender: int, number: int) -> int:
    """By the kernel, which needs no search (Linux 6.11). OSError where it has no such number."""
    fd = proc_files.open_file(f"/proc/{sender}/ns/pid")
    try:
        return ioctl(fd, _NS_GET_PID_FROM_PIDNS, number)
    finally:
        os.close(fd)


def _find(sender: int, number: int, field: str) -> int | None:
    level = len(procfs.numbers(sender, "NSpid")) - 1
    wanted = namespace(sender)
    if not wanted:
        return None
    for pid in proc_files.all_pids():
        for tid in (pid,) if field == "NSpgid" else procfs.threads(pid):
            numbers = procfs.numbers(tid, field)
            if numbers and len(numbers) <= level:
                break  # it lives above, and its other threads do
            if numbers and numbers[level] == number and _is_within(pid, level, wanted):
                return numbers[0]
    return None


def _is_within(pid: int, level: int, wanted: str) -> bool:
    """Its namespace is the wanted one or lies below it: one number at a level says nothing yet."""
    depth = len(procfs.numbers(pid, "NSpid")) - 1
    if depth < level:
        return False
    try:
        fd = proc_files.open_file(f"/proc/{pid}/ns/pid")
    except OSError:
        return False
    for _ in range(depth - level):
        try:
            parent = ioctl(fd, _NS_GET_PARENT)
        except OSError:
            os.close(fd)
            return False
        os.close(fd)
        fd = parent
    try:
        return f"pid:[{os.fstat(fd).st_ino}]" == wanted
    finally:
        os.close(fd)
