"""Read and write another process's memory, and erase variables from sigwrap's own.

Reads use /proc/TID/mem: a read into an unmapped page is short there. With process_vm_readv, the
result would depend on how the request is split.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Collection, Iterator

from sigwrap.errors import KernelError
from sigwrap.kernel import procfs
from sigwrap.kernel.libc import syscall
from sigwrap.kernel.paths import WouldBlock
from sigwrap.machine import IS_AARCH64, NUMBERS

PATH_MAX = 4096
_SYS_PROCESS_VM_WRITEV = NUMBERS["process_vm_writev"]
_CHUNK = 256
_PAGE_BITS = 12
SERVED = "its arguments may be in memory that another program serves"
_PAGES_AT_ONCE = 256  # each page may be in a file on a disk
_ANY_NUMBER = sys.maxsize
# aarch64 ignores a pointer's upper byte, where a process may keep data.
_ADDRESS = (1 << 56) - 1 if IS_AARCH64 else (1 << 64) - 1


class Unreadable(OSError):
    """The pointer is invalid (EFAULT), or the memory cannot be read."""

    def __init__(self, error: int = errno.EFAULT) -> None:
        super().__init__(error, os.strerror(error))


# A program that serves a mapped file decides how long a read takes. No process in the session can
# serve files before it has mounted something. From then on the loop itself reads no memory.
_may_be_served = False


def expect_served_memory() -> None:
    global _may_be_served
    _may_be_served = True


def may_be_served() -> bool:
    return _may_be_served


def write_memory(pid: int, address: int, data: bytes) -> None:
    """Write all the data. Raises KernelError if any of it is not writable."""
    text = ctypes.create_string_buffer(data, len(data))
    ours = struct.pack("<QQ", ctypes.addressof(text), len(data))
    theirs = struct.pack("<QQ", address, len(data))
    syscall("process_vm_writev", _SYS_PROCESS_VM_WRITEV, pid, ours, 1, theirs, 1, 0)


class Memory:
    """The memory of one thread, read only, until its next exec.

    Raises WouldBlock at the 257th page, or at once if it may be served, unless it may wait.
    """

    __slots__ = ("_chunk", "_chunk_at", "_fd", "_page", "_pages_left")

    def __init__(self, tid: int, *, may_wait: bool = False) -> None:
        if _may_be_served and not may_wait:
            raise WouldBlock(SERVED)
        try:
            self._fd = procfs.open_file(f"/proc/{tid}/mem")
        except OSError as refusal:
            raise Unreadable(refusal.errno or errno.EFAULT) from refusal
        self._page, self._pages_left = -1, _ANY_NUMBER if may_wait else _PAGES_AT_ONCE
        self._chunk, self._chunk_at = b"", 0  # the last chunk, because most strings are adjacent

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *exc: object) -> None:
        os.close(self._fd)

    def string(self, address: int, limit: int = PATH_MAX) -> tuple[bytes, bool]:
        """Return the bytes before the NUL, and whether the limit cut them short."""
        start = address - self._chunk_at
        if 0 <= start < len(self._chunk):
            end = self._chunk.find(b"\0", start, start + limit)
            if end >= 0:
                return self._chunk[start:end], False
        found = b""
        while len(found) < limit:
            at = address + len(found)
            chunk = self.read(at, min(_CHUNK, limit - len(found)))
            end = chunk.find(b"\0")
            if end >= 0:
                self._chunk, self._chunk_at = chunk, at
                return found + chunk[:end], False
            found += chunk
        return found, True

    def strings(
        self, address: int, word_size: int, limit: int, most: int | None = None
    ) -> tuple[list[bytes], bool]:
        """Return a NULL-terminated array of strings, and whether a limit cut it short.

        The limits are `limit` bytes in all, and `most` strings.
        """
        if address == 0:
            return [], False  # Linux takes a NULL argv for an empty one
        found: list[bytes] = []
        room = limit
        for pointer in self._pointers(address, word_size, limit):
            if pointer == 0:
                return found, False
            if room <= 0 or len(found) == most:
                break
            text, cut = self.string(pointer, room)
            found.append(text)
            room -= len(text) + 1
            if cut:
                break
        return found, True

    def block(self, address: int, size: int) -> bytes:
        data = self.read(address, size)
        if len(data) < size:
            raise Unreadable
        return data

    def _pointers(self, address: int, word_size: int, limit: int) -> list[int]:
        """Return the pointers up to and including the first NULL."""
        size = 32 * word_size
        data = b""
        while len(data) < limit:
            chunk = self.read(address + len(data), size)
            chunk = chunk[: len(chunk) - len(chunk) % word_size]
            if not chunk:
                raise Unreadable
            data += chunk
            words = memoryview(data).cast("Q" if word_size == 8 else "I").tolist()
            if 0 in words:
                return words[: words.index(0) + 1]
            size *= 2
        return words

    def read(self, address: int, size: int) -> bytes:
        """Return one byte at least, and fewer than wanted if the mapping ends."""
        page = address >> _PAGE_BITS
        if page != self._page:
            self._page = page
            self._pages_left -= 1
            if self._pages_left < 0:
                raise WouldBlock("its arguments span many pages")
        try:
            data = os.pread(self._fd, size, address & _ADDRESS)
        except (OSError, OverflowError) as refusal:
            raise Unreadable from refusal
        if not data:
            raise Unreadable
        return data


def forget(names: Collection[bytes]) -> bool:
    """Erase variables from this process's /proc/PID/environ. Return False if that is impossible."""
    start, end = _environment_area(os.getpid())
    if start == end:
        return False
    for name in names:
        if value := os.environb.get(name):
            os.putenv(name, value)  # a copy: the C library still reads TZ and TMPDIR
    area = (ctypes.c_char * (end - start)).from_address(start)
    for at, length in _entries(area.raw, names):
        ctypes.memset(start + at, 0, length)
    return True


def forget_in(pid: int, names: Collection[bytes]) -> bool:
    """Erase them from another process of ours. Return False if one can still be read there."""
    start, _ = _environment_area(pid)
    area = procfs.contents(f"/proc/{pid}/environ") or b""
    for at, length in _entries(area, names):
        try:
            write_memory(pid, start + at, bytes(length))
        except KernelError:
            return False  # Yama, or a filter of a container
    return procfs.environment(pid).keys().isdisjoint(names)


def _environment_area(pid: int) -> tuple[int, int]:
    """Return where the environment that exec passed begins and ends; 0, 0 if that is unreadable."""
    fields = procfs.figures(pid)
    return (0, 0) if fields is None else (int(fields[47]), int(fields[48]))


def _entries(area: bytes, names: Collection[bytes]) -> Iterator[tuple[int, int]]:
    """Yield the offset and length of each entry with one of the names."""
    wanted, at = frozenset(names), 0
    for entry in area.split(b"\0"):
        name, equals, _ = entry.partition(b"=")
        if equals and name in wanted:
            yield at, len(entry)
        at += len(entry) + 1
