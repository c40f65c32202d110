"""Who waits for a terminal's input right now, from /proc/TID/syscall: in a read, or in a poll that
has the terminal among what it watches. What can't be looked at counts as not waiting: then the
kernel keeps it from reading while a question is up (terminal_prompt.py)."""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterator

from sigwrap.linux import held_terminals, proc_files, procfs
from sigwrap.linux.memory import Memory, Unreadable
from sigwrap.machine import IS_X86_64, numbers_of

_NULL_DEVICE = os.makedev(1, 3)
_CONTROLLING = os.makedev(5, 0)
_POLLIN = 0x001
_POLLED = struct.Struct("=ihh")
_MOST_DESCRIPTORS = 4_096

_READ = numbers_of("read", "readv") | ({3} if IS_X86_64 else set())  # 3: of an i386 program
_POLL = numbers_of("poll", "ppoll")
_SELECT = numbers_of("select", "pselect6")
_EPOLL = numbers_of("epoll_wait", "epoll_pwait", "epoll_pwait2")


def waits_for_input(pid: int) -> bool:
    try:
        threads = proc_files.names(f"/proc/{pid}/task")
    except OSError:
        return False
    return any(_has_terminal(thread, fd) for thread in threads for fd in _awaited_by(thread))


def reads_a_line(pid: int) -> bool:
    """Its first thread waits for nothing else: a server that ends may poll its input meanwhile."""
    known = procfs.call_and_arguments(pid, pid)
    return known is not None and known[0] in _READ and _has_terminal(pid, known[1][0])


def opened_terminals(pid: int) -> frozenset[int]:
    """Its descriptors of our controlling terminal that no program finds open at its start, and that
    aren't out of the way, where shells and sigwrap hold theirs."""
    ours = (_CONTROLLING, procfs.controlling_terminal(os.getpid()))
    found = range(3, held_terminals.LOWEST_HELD)
    return frozenset(fd for fd in found if _character_device(pid, fd) in ours)


def _has_terminal(thread: int | str, fd: int) -> bool:
    return _character_device(thread, fd) not in (0, _NULL_DEVICE)


def _character_device(thread: int | str, fd: int) -> int:
    """Its number; 0 where it is none."""
    try:
        found = proc_files.file_status(f"/proc/{thread}/fd/{fd}")
    except OSError:
        return 0
    return found.st_rdev if stat.S_ISCHR(found.st_mode) else 0


def _awaited_by(thread: str) -> Iterator[int]:
    words = _text(f"/proc/{thread}/syscall").split()
    if len(words) < 4:  # it is running, or waits outside of a system call
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
    except Unreadable:
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
