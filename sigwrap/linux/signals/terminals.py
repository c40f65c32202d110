"""Terminals as the kernel knows them: whose they are, and whom their keys signal."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct

from sigwrap.linux import proc_files, procfs
from sigwrap.linux.file_state import device_of, kind_of

_TIOCGDEV = 0x80045432
_TIOCGPTN = 0x80045430
_ANYBODYS_OWN = os.makedev(5, 0)  # /dev/tty


def number(fd: int) -> int:
    """As it stands in /proc/PID/stat of whoever it controls; 0 where `fd` is none."""
    try:
        return int(struct.unpack("I", fcntl.ioctl(fd, _TIOCGDEV, bytes(4)))[0])
    except OSError:
        return 0


def open_as_ours(tid: int, fd: int) -> int:
    """What controls both `tid` and us, where its descriptor is one of that terminal. OSError where
    it is not."""
    ours = procfs.controlling_terminal(os.getpid())
    kind, major, minor = device_of(b"/proc/%d/fd/%d" % (tid, fd))
    named = os.makedev(major, minor)
    if kind != stat.S_IFCHR or ours is None or ours != procfs.controlling_terminal(tid):
        raise OSError(errno.ENOTTY, os.strerror(errno.ENOTTY))
    if named not in (_ANYBODYS_OWN, ours):
        raise OSError(errno.ENOTTY, os.strerror(errno.ENOTTY))
    return os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)


def is_other_end(fd: int) -> bool:
    """Of a pseudo-terminal: what the terminal emulator holds."""
    try:
        fcntl.ioctl(fd, _TIOCGPTN, bytes(4))
    except OSError:
        return False
    return True


def is_device(fd: int) -> bool:
    """Some drivers take the caller for the owner of a descriptor that has none."""
    return kind_of(b"/proc/self/fd/%d" % fd)[0] == stat.S_IFCHR


def users(terminal: int) -> list[int]:
    """Processes that it controls."""
    return [pid for pid in proc_files.all_pids() if _controlled_by(pid)[0] == terminal]


def foreground_group(terminal: int) -> int:
    """Of a terminal that may control other processes than us; 0 where it controls none."""
    for pid in proc_files.all_pids():
        controlling, group = _controlled_by(pid)
        if controlling == terminal:
            return max(group, 0)
    return 0


def _controlled_by(pid: int) -> tuple[int, int]:
    return procfs.terminal(pid) or (0, 0)
