"""Sigwrap's terminals, and the processes that wait for their input.

Sigwrap opens its terminals before the command runs: by TIOCEXCL or a chmod, the command could
prevent a later open. Sigwrap never waits long to write.

/proc/TID/syscall shows a thread that waits for input: in a read, or in a poll that watches the
terminal. A thread that sigwrap may not inspect counts as not waiting. While sigwrap asks on the
terminal, the kernel then keeps that thread from reading (run/asking).
"""

from __future__ import annotations

import fcntl
import os
import select
import stat
import struct
import termios
import time
from collections.abc import Iterator

from sigwrap.linux import proc_files, procfs
from sigwrap.linux.file_state import Inode, inode_of_descriptor
from sigwrap.linux.memory import Memory, Unreadable
from sigwrap.linux.paths import MayWait
from sigwrap.machine import IS_X86_64, numbers_of

_LOWEST_HELD = 10
_FLAGS = os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NULL_DEVICE = os.makedev(1, 3)
_DEV_TTY = os.makedev(5, 0)
_POLLIN = 0x001
_POLLED = struct.Struct("=ihh")
_MOST_DESCRIPTORS = 4_096

_READ = numbers_of("read", "readv") | ({3} if IS_X86_64 else set())  # 3: of an i386 program
_POLL = numbers_of("poll", "ppoll")
_SELECT = numbers_of("select", "pselect6")
_EPOLL = numbers_of("epoll_wait", "epoll_pwait", "epoll_pwait2")

controlling = -1  # the controlling terminal, open for reading too; -1 if there is none
_held: dict[Inode, int] = {}  # by the inode that they were opened from


def hold() -> None:
    """Open the controlling terminal and the one on standard error, before the command runs."""
    global controlling
    try:
        controlling = _moved_up(os.open("/dev/tty", os.O_RDWR | _FLAGS))
        _held[inode_of_descriptor(controlling)] = controlling
    except OSError:
        pass  # there is no controlling terminal
    if os.isatty(2):
        try:
            held = proc_files.open_file("/proc/self/fd/2", os.O_WRONLY | _FLAGS)
            _held[inode_of_descriptor(2)] = _moved_up(held)
        except OSError:  # another user's terminal, as under sudo
            if os.fstat(2).st_rdev == procfs.controlling_terminal(os.getpid()):
                _held[inode_of_descriptor(2)] = controlling


def same_as(fd: int) -> int | None:
    """Return the held descriptor of the same terminal."""
    return _held.get(inode_of_descriptor(fd))


def write(held: int, data: bytes) -> int:
    """Write, even if the command has stopped the output (TCOOFF).

    Raises BlockingIOError if the user has stopped it (Ctrl+S).
    """
    try:
        return os.write(held, data)
    except BlockingIOError:
        let_output_go_on(held)
        return os.write(held, data)


def write_all(held: int, data: bytes, *, within_s: float) -> bool:
    """Write everything, and return whether that worked in time.

    A terminal takes some kilobytes at once, and nothing while another process writes.
    """
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
    """Undo TCOOFF. The calling thread must block SIGTTOU."""
    try:
        termios.tcflow(held, termios.TCOON)
    except termios.error as refusal:
        raise OSError(*refusal.args) from None


def _moved_up(fd: int) -> int:
    """Move a descriptor to the numbers that shells use, because programs use the lower ones."""
    try:
        moved = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _LOWEST_HELD)
    except OSError:  # the limit of open files is too low
        return fd
    os.close(fd)
    return moved


def waits_for_input(pid: int) -> bool:
    """Return whether any of its threads waits for a terminal's input."""
    try:
        threads = proc_files.names(f"/proc/{pid}/task")
    except OSError:
        return False
    return any(_has_terminal(thread, fd) for thread in threads for fd in _awaited_by(thread))


def reads_a_line(pid: int) -> bool:
    """Return whether its first thread reads from a terminal, and waits for nothing else.

    A server that is about to end may still poll its input.
    """
    known = procfs.call_and_arguments(pid, pid)
    return known is not None and known[0] in _READ and _has_terminal(pid, known[1][0])


def opened_terminals(pid: int) -> frozenset[int]:
    """Return the descriptors of our controlling terminal that the program has opened itself.

    Not the standard streams, and not the higher ones that shells and sigwrap hold.
    """
    ours = (_DEV_TTY, procfs.controlling_terminal(os.getpid()))
    return frozenset(fd for fd in range(3, _LOWEST_HELD) if _character_device(pid, fd) in ours)


def _has_terminal(thread: int | str, fd: int) -> bool:
    return _character_device(thread, fd) not in (0, _NULL_DEVICE)


def _character_device(thread: int | str, fd: int) -> int:
    """Return the device number, or 0 if it is no character device."""
    try:
        found = proc_files.file_status(f"/proc/{thread}/fd/{fd}")
    except OSError:
        return 0
    return found.st_rdev if stat.S_ISCHR(found.st_mode) else 0


def _awaited_by(thread: str) -> Iterator[int]:
    """Yield the descriptors from which the thread waits to read."""
    words = _text(f"/proc/{thread}/syscall").split()
    if len(words) < 4:  # it runs, or waits outside a system call
        return
    number, first, second = int(words[0]), int(words[1], 16), int(words[2], 16)
    try:
        if number in _READ:
            yield first
        elif number in _POLL:
            yield from _polled(thread, first, second)
        elif number in _SELECT:
            yield from _selected(thread, first, second)
        elif number in _EPOLL:
            yield from _watched(thread, first)
    except (Unreadable, MayWait):
        return


def _polled(thread: str, address: int, count: int) -> Iterator[int]:
    size = _POLLED.size * min(count, _MOST_DESCRIPTORS)
    if size:
        with Memory(int(thread)) as memory:
            for fd, events, _ in _POLLED.iter_unpack(memory.block(address, size)):
                if fd >= 0 and events & _POLLIN:
                    yield fd


def _selected(thread: str, count: int, address: int) -> Iterator[int]:
    count = min(count, _MOST_DESCRIPTORS)
    if count and address:
        with Memory(int(thread)) as memory:
            bits = int.from_bytes(memory.block(address, (count + 7) // 8), "little")
        yield from (fd for fd in range(count) if bits >> fd & 1)


def _watched(thread: str, epoll_fd: int) -> Iterator[int]:
    for line in _text(f"/proc/{thread}/fdinfo/{epoll_fd}").split("\n"):
        words = line.split()  # tfd: 0 events: 1f ...
        if words[:1] == ["tfd:"] and len(words) > 3 and int(words[3], 16) & _POLLIN:
            yield int(words[1])


def _text(path: str) -> str:
    return (proc_files.contents(path) or b"").decode("ascii", "replace")
