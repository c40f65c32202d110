"""Variables taken out of what /proc/PID/environ shows of sigwrap's own processes.

That file is the part of a process's stack where exec has put its environment, and shows what is
written there. Who is not dumpable is read by root alone; but root reads it also past a Landlock
domain, and the one-file binary's outer process is dumpable.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Collection, Iterator

from sigwrap.errors import KernelError
from sigwrap.linux import proc_files, procfs
from sigwrap.linux.memory import write_memory


def forget(names: Collection[bytes]) -> bool:
    """In this process. False where it can't be."""
    start, size = procfs.environment_area("self")
    if not size:
        return False
    for name in names:
        if value := os.environb.get(name):
            os.putenv(name, value)  # a copy elsewhere: the C library goes on reading TZ and TMPDIR
    area = (ctypes.c_char * size).from_address(start)
    for at, length in _entries(area.raw, names):
        ctypes.memset(start + at, 0, length)
    return True


def forget_in(pid: int, names: Collection[bytes]) -> bool:
    """In another process of ours. False where it can still be read there."""
    start, _ = procfs.environment_area(pid)
    area = proc_files.contents(f"/proc/{pid}/environ") or b""
    for at, length in _entries(area, names):
        try:
            write_memory(pid, start + at, bytes(length))
        except KernelError:
            return False  # Yama, or a filter of a container
    return procfs.environment(pid).keys().isdisjoint(names)


def _entries(area: bytes, names: Collection[bytes]) -> Iterator[tuple[int, int]]:
    """Where those of `names` are, and how long."""
    wanted, at = frozenset(names), 0
    for entry in area.split(b"\0"):
        name, equals, _ = entry.partition(b"=")
        if equals and name in wanted:
            yield at, len(entry)
        at += len(entry) + 1
