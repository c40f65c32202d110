"""Erase variables from the /proc/PID/environ of sigwrap's own processes.

That file shows the part of a process's stack where exec put its environment. Only root reads it of
a process that is not dumpable. But root can read it from inside a Landlock domain too, and the
one-file binary's outer process is dumpable.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Collection, Iterator

from sigwrap.errors import KernelError
from sigwrap.linux import proc_files, procfs
from sigwrap.linux.memory import write_memory


def forget(names: Collection[bytes]) -> bool:
    """Erase them in this process. Return False if that is impossible."""
    start, size = procfs.environment_area("self")
    if not size:
        return False
    for name in names:
        if value := os.environb.get(name):
            os.putenv(name, value)  # a copy: the C library still reads TZ and TMPDIR
    area = (ctypes.c_char * size).from_address(start)
    for at, length in _entries(area.raw, names):
        ctypes.memset(start + at, 0, length)
    return True


def forget_in(pid: int, names: Collection[bytes]) -> bool:
    """Erase them in another process of ours. Return False if one can still be read there."""
    start, _ = procfs.environment_area(pid)
    area = proc_files.contents(f"/proc/{pid}/environ") or b""
    for at, length in _entries(area, names):
        try:
            write_memory(pid, start + at, bytes(length))
        except KernelError:
            return False  # Yama, or a filter of a container
    return procfs.environment(pid).keys().isdisjoint(names)


def _entries(area: bytes, names: Collection[bytes]) -> Iterator[tuple[int, int]]:
    """Yield the offset and length of each entry with one of the names."""
    wanted, at = frozenset(names), 0
    for entry in area.split(b"\0"):
        name, equals, _ = entry.partition(b"=")
        if equals and name in wanted:
            yield at, len(entry)
        at += len(entry) + 1
