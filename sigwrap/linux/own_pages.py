"""Pages of our own for the files that we run from.

A clean page of a private mapping is the page cache: whoever writes the file changes the code of
every process that has it mapped. So each mapping of a file that the session's processes could write
is replaced by memory of our own before COMMAND runs. 2,000 pages take about 4 ms, and 8 MB, which
forks share. Where that is forbidden, each page is written to at least: Linux copies it then, and a
later write to the file doesn't show, but a truncation does. The system's own libraries are left as
they are, for root as well: with them, every program of the machine would be changed.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterator

from sigwrap.linux import proc_files
from sigwrap.linux.libc import libc
from sigwrap.linux.unfiled import Span, take_off_their_files
from sigwrap.tuples import NamedTuple

_PAGE = 4096
_WRITE = 2
_FLAGS = ((b"r", 1), (b"w", _WRITE), (b"x", 4))
_POPULATE_WRITE = 23  # of madvise, Linux 5.14

_SYSTEM_FOLDERS = ("/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/")

_done: set[tuple[int, int]] = set()
_mapped: set[str] = set()


class Mapping(NamedTuple):
    start: int
    end: int
    protection: int
    device: str
    inode: int
    path: str


def own_file_pages() -> list[str]:
    """To be called again once more was loaded. Returns the files that can still change what we run
    (a system may forbid code that is in no file, or was writable once)."""
    ours: dict[tuple[str, int], bool] = {}
    theirs = []
    for mapping in _private_file_mappings():
        _mapped.add(mapping.path)
        span, file = (mapping.start, mapping.end), (mapping.device, mapping.inode)
        if span in _done:
            continue
        if file not in ours:
            ours[file] = _can_be_written(mapping)
        if ours[file]:
            theirs.append(mapping)
        else:
            _done.add(span)
    spans = [Span(each.start, each.end - each.start, each.protection) for each in theirs]
    moved = take_off_their_files(spans) if spans else []
    refused = [mapping for mapping, is_moved in zip(theirs, moved, strict=True) if not is_moved]
    for mapping in refused:
        _own(mapping)
    return sorted({mapping.path for mapping in refused})


def mapped_files() -> list[str]:
    """When own_file_pages was called."""
    return sorted(path for path in _mapped if not path.endswith(" (deleted)"))


def _private_file_mappings() -> Iterator[Mapping]:
    return read_maps(proc_files.all_contents("/proc/self/maps"))


def read_maps(text: bytes) -> Iterator[Mapping]:
    """Of a name in it the kernel escapes line ends, and nothing else."""
    for line in text.split(b"\n")[:-1]:
        span, flags, _offset, device, inode, padded = line.split(b" ", 5)
        path = padded.lstrip(b" ")
        protection = sum(bit for flag, bit in _FLAGS if flag in flags)
        if inode == b"0" or not path or not flags.endswith(b"p") or not protection:
            continue
        start, end = (int(address, 16) for address in span.split(b"-"))
        yield Mapping(start, end, protection, device.decode(), int(inode), os.fsdecode(path))


def _can_be_written(mapping: Mapping) -> bool:
    """By a process of this user: an owner can always make it so."""
    path = mapping.path
    try:
        state = os.stat(path)
        if state.st_ino != mapping.inode:
            return True  # removed, or out of sight: then nobody knows
        if state.st_uid == 0 and path.startswith(_SYSTEM_FOLDERS) and "/python" not in path:
            return False
        may_be = state.st_uid == os.geteuid() or os.access(path, os.W_OK)
        return may_be and not _is_busy_program(path)
    except OSError:
        return True


def _is_busy_program(path: str) -> bool:
    """While a program runs, nobody can open its file to write it (but on Linux 6.11). Only of that
    is it asked: of another, whoever watches the file would be told of a writer."""
    if not os.path.samefile(path, "/proc/self/exe"):
        return False
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK))
    except OSError as failure:
        return failure.errno == errno.ETXTBSY
    return False


def _own(mapping: Mapping) -> None:
    start, size = mapping.start, mapping.end - mapping.start
    writable = mapping.protection & _WRITE
    if not writable and not _protect(start, size, mapping.protection | _WRITE):
        return
    _write_to_each_page(start, size)
    if not writable:
        _protect(start, size, mapping.protection)


def _protect(start: int, size: int, protection: int) -> bool:
    span = (ctypes.c_void_p(start), ctypes.c_size_t(size))
    return bool(libc.mprotect(*span, ctypes.c_int(protection)) == 0)


def _write_to_each_page(start: int, size: int) -> None:
    span = (ctypes.c_void_p(start), ctypes.c_size_t(size))
    if libc.madvise(*span, ctypes.c_int(_POPULATE_WRITE)) == 0:
        return
    if ctypes.get_errno() == errno.EINVAL:
        for page in range(start, start + size, _PAGE):  # a kernel before 5.14
            ctypes.memmove(page, page, 1)
