"""The terminals that sigwrap speaks on, held open from before COMMAND: by TIOCEXCL or a chmod it
could keep us from opening them later. Written to without waiting for long."""

from __future__ import annotations

import fcntl
import os
import select
import termios
import time

from sigwrap.linux import proc_files, procfs
from sigwrap.linux.file_state import Inode, inode_of_descriptor

LOWEST_HELD = 10
_FLAGS = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

controlling = -1  # to read from as well; -1 where there is none
_held: dict[Inode, int] = {}  # by the file that they were opened by


def hold() -> None:
    """Once, before COMMAND runs: the controlling terminal, and the one on standard error."""
    global controlling
    try:
        controlling = _out_of_the_way(os.open("/dev/tty", os.O_RDWR | _FLAGS))
        _held[inode_of_descriptor(controlling)] = controlling
    except OSError:
        pass  # there is none
    if os.isatty(2):
        try:
            held = proc_files.open_file("/proc/self/fd/2", os.O_WRONLY | _FLAGS)
            _held[inode_of_descriptor(2)] = _out_of_the_way(held)
        except OSError:  # somebody else's, as under sudo, but ours to use
            if os.fstat(2).st_rdev == procfs.controlling_terminal(os.getpid()):
                _held[inode_of_descriptor(2)] = controlling


def same_as(fd: int) -> int | None:
    return _held.get(inode_of_descriptor(fd))


def write(held: int, data: bytes) -> int:
    """Also where COMMAND has stopped the output (TCOOFF). Where a person has (Ctrl+S), that stays,
    and it is a BlockingIOError."""
    try:
        return os.write(held, data)
    except BlockingIOError:
        let_output_go_on(held)
        return os.write(held, data)


def write_all(held: int, data: bytes, *, within_s: float) -> bool:
    """Whether it was. A terminal takes some kilobytes at once, and none while others write."""
    until_s = time.monotonic() + within_s
    poll = select.poll()
    poll.register(held, select.POLLOUT)
    while True:
        try:
            data = data[write(held, data) :]
        except BlockingIOError:
            pass
        except OSError:
            return False
        left_s = until_s - time.monotonic()
        if not data or left_s <= 0 or not poll.poll(left_s * 1000):
            return not data


def let_output_go_on(held: int) -> None:
    """SIGTTOU is blocked here."""
    try:
        termios.tcflow(held, termios.TCOON)
    except termios.error as refusal:
        raise OSError(*refusal.args) from None


def _out_of_the_way(fd: int) -> int:
    """To where shells hold theirs: by a lower number, a program uses the terminal for itself."""
    try:
        moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, LOWEST_HELD)
    except OSError:  # so many may not be open here
        return fd
    os.close(fd)
    return moved
