"""Which program an ELF file names as its loader: the kernel maps that one too, and starts it."""

from __future__ import annotations

import ctypes
import mmap
import os
import stat
import struct

from sigwrap.linux import proc_files
from sigwrap.linux.execs.content import KnownByState, reopen
from sigwrap.linux.file_state import State
from sigwrap.machine import IS_AARCH64
from sigwrap.tuples import NamedTuple

MAGIC = b"\x7fELF"

# The C libraries' own, which nobody but root can put anything in the place of.
USUAL = frozenset(
    {
        b"/lib64/ld-linux-x86-64.so.2",
        b"/lib/ld-linux.so.2",
        b"/lib/ld-musl-x86_64.so.1",
        b"/lib/ld-musl-i386.so.1",
        b"/lib/ld-linux-aarch64.so.1",
        b"/lib/ld-musl-aarch64.so.1",
    }
)
_PT_INTERP = 3
_PATH_MAX = 4096
_MACHINE_AT = 18
_NATIVE = b"\xb7\0" if IS_AARCH64 else b"\x3e\0"  # EM_AARCH64, EM_X86_64
_READ_AT_ONCE = 4096
_WIDE = (struct.Struct("<32xQ14xHH"), struct.Struct("<I4xQ16xQ16x"))
_NARROW = (struct.Struct("<28xI10xHH"), struct.Struct("<II8xI12x"))


class Loader(NamedTuple):
    """What an ELF file names."""

    path: bytes  # empty: a usual one, or none
    may_change: bool  # somebody who isn't root may write to the file


USUAL_OF_ROOT = Loader(b"", may_change=False)

_known = KnownByState[Loader]()


def loader(fd: int, state: State) -> Loader:
    """Of a file that begins with MAGIC. OSError where it can't be read."""
    found = _known.get(state)
    if found is None:
        found = _look(fd)
        _known.keep(state, found)
    return found


def holds(fd: int, found: Loader) -> bool:
    """At the exec stop, when nobody can write to the file any more."""
    return not found.may_change or _look(fd) == found


def is_mapped(pid: int, fd: int) -> bool:
    """Whether a process has the file in its memory. On some file systems /proc/PID/maps has other
    numbers for it than stat: so it is mapped here as well, and looked up likewise."""
    readable = reopen(fd)
    try:
        here = mmap.mmap(readable, 1, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
    finally:
        os.close(readable)
    with here:
        address = ctypes.addressof(ctypes.c_char.from_buffer(here))
        places = {place for start, place in _mapped("self") if start == address}
    return any(place in places for _, place in _mapped(pid))


def _mapped(pid: int | str) -> list[tuple[int, tuple[bytes, bytes]]]:
    """Where, and what: its device and inode."""
    with os.fdopen(proc_files.open_file(f"/proc/{pid}/maps"), "rb") as maps:
        lines = [line.split(b" ", 5) for line in maps]
    return [(int(words[0].partition(b"-")[0], 16), (words[3], words[4])) for words in lines]


def _look(fd: int) -> Loader:
    readable = reopen(fd)
    try:
        state = os.fstat(readable)
        path = _interpreter(readable)
    finally:
        os.close(readable)
    is_roots = state.st_uid == 0 and not state.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return Loader(b"" if path in USUAL else path, not is_roots)


def _interpreter(fd: int) -> bytes:
    start = os.pread(fd, _READ_AT_ONCE, 0)
    is_native = start[_MACHINE_AT : _MACHINE_AT + 2] == _NATIVE  # the kernel looks at no class
    for header, entry in (_WIDE, _NARROW) if is_native else (_NARROW,):
        try:
            headers_at, entry_bytes, count = header.unpack_from(start)
            if entry_bytes == entry.size:
                return _named_in(_part(fd, start, headers_at, count * entry.size), entry, fd, start)
        except (struct.error, OverflowError, OSError):
            pass  # it is cut off, or leads nowhere: the kernel refuses it
    return b""


def _named_in(table: bytes, entry: struct.Struct, fd: int, start: bytes) -> bytes:
    for kind, offset, size in entry.iter_unpack(table):
        if kind == _PT_INTERP:
            return _part(fd, start, offset, min(size, _PATH_MAX)).partition(b"\0")[0]
    return b""


def _part(fd: int, start: bytes, offset: int, size: int) -> bytes:
    if offset + size <= len(start):
        return start[offset : offset + size]
    return os.pread(fd, size, offset)
