"""Translate pids of another pid namespace to this one."""

from __future__ import annotations

import errno
import os
from fcntl import ioctl

from sigwrap.linux import proc_files, procfs

_NS_GET_PARENT = 0xB702
_NS_GET_PID_FROM_PIDNS = 0x8004B706


def level(pid: int) -> str:
    """Return how deep below /proc's pid namespace a process is.

    /proc shows only this namespace and those below, so a process on the same level is in the same
    namespace. A process that is not dumpable hides its ns/pid, but not this.
    """
    return str(len(procfs.numbers(pid, "NSpid")))


def namespace(pid: int) -> str:
    try:
        return proc_files.link(f"/proc/{pid}/ns/pid")
    except OSError:
        return ""


def process(sender: int, number: int) -> int | None:
    """Return the pid or tid that `sender` knows as `number`."""
    try:
        return _translated(sender, number)
    except OSError as refusal:
        return _find(sender, number, "NSpid") if refusal.errno == errno.ENOTTY else None


def group(sender: int, number: int) -> int | None:
    try:  # most groups have their leader
        return _translated(sender, number)
    except OSError:
        return _find(sender, number, "NSpgid")


def _translated(sender: int, number: int) -> int:
    """Ask the kernel, without a search (Linux 6.11). Raises OSError if there is none."""
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
                break  # its namespace is above, and so are its other threads'
            if numbers and numbers[level] == number and _is_within(pid, level, wanted):
                return numbers[0]
    return None


def _is_within(pid: int, level: int, wanted: str) -> bool:
    """Return whether a process is in the wanted namespace or below: levels have many namespaces."""
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
