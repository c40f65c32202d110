"""What is in a file that an exec would run: how it begins, the interpreter that a script names, the
loader that an ELF file names, and its digest."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import stat
import struct
import time
from collections.abc import Sequence

from sigwrap.bare import NamedTuple, sha256
from sigwrap.kernel import procfs
from sigwrap.kernel.file_state import State
from sigwrap.kernel.paths import WouldBlock
from sigwrap.machine import IS_AARCH64

HASHED_AT_ONCE_BYTES = 4 * 1024 * 1024  # a few milliseconds
MAX_HASHED_BYTES = 1 << 30
READ_TO_COMPARE_BYTES = 8 << 20  # of all files of an exec together, in about 8 ms
_READ_AT_ONCE_BYTES = 1 << 18
_KEPT = 4096
_CTIME_GRAIN_NS = 100_000_000  # two writes within one tick of a coarse clock look the same

LEASED = "another process holds a lease on the file"

_HEADER_BYTES = 256  # BINPRM_BUF_SIZE
MAX_INTERPRETERS = 5  # the kernel refuses a sixth with ELOOP
_BLANKS = b" \t"

ELF_MAGIC = b"\x7fELF"
# The loaders of the C libraries, which also run another program without an exec. Only root can
# replace them.
USUAL_LOADERS = (
    *(b"/lib64/ld-linux-x86-64.so.2", b"/lib/ld-linux.so.2", b"/lib/ld-linux-aarch64.so.1"),
    *(b"/lib/ld-musl-x86_64.so.1", b"/lib/ld-musl-i386.so.1", b"/lib/ld-musl-aarch64.so.1"),
)
_PT_INTERP = 3
_PATH_MAX = 4096
_MACHINE_AT = 18
_NATIVE = b"\xb7\0" if IS_AARCH64 else b"\x3e\0"  # EM_AARCH64, EM_X86_64
_READ_AT_START = 4096
_WIDE = (struct.Struct("<32xQ14xHH"), struct.Struct("<I4xQ16xQ16x"))
_NARROW = (struct.Struct("<28xI10xHH"), struct.Struct("<II8xI12x"))


class ExecRefused(Exception):
    """The kernel would refuse the exec; `errno` is what it would say."""

    def __init__(self, error: int) -> None:
        super().__init__(error)
        self.errno = error


def has_settled(state: State) -> bool:
    """Return whether the next write will change the state. Two writes within one tick of a coarse
    clock may give a file the same ctime."""
    seconds, nanoseconds = state.changed
    return time.time_ns() - seconds * 1_000_000_000 - nanoseconds > _CTIME_GRAIN_NS


def reopen(fd: int, *, may_wait: bool = False) -> int:
    """Open the file for reading. A lease of another process on the file can make that wait."""
    return procfs.open_file(f"/proc/self/fd/{fd}", os.O_RDONLY | (0 if may_wait else os.O_NONBLOCK))


class Loader(NamedTuple):
    """The loader that an ELF file names: the kernel maps it as well, and starts it."""

    path: bytes  # empty: a usual one, or none
    may_change: bool  # a process other than root's may write to the ELF file


USUAL_OF_ROOT = Loader(b"", may_change=False)


class Beginning(NamedTuple):
    header: bytes
    loader: Loader | None  # of an ELF file


_beginnings: dict[State, Beginning] = {}  # of files whose state changes with the next write


def beginning(fd: int, state: State, *, may_wait: bool) -> Beginning | None:
    """Return how the file begins; None if sigwrap may not read it. Raises WouldBlock, also for a
    leased file: its holder has 45 s to give the lease up.

    A write through a mapping does not change the state: then the kernel loads another image, which
    the exec stop notices.
    """
    known = _beginnings.get(state)
    if known is not None:
        return known
    try:
        found = beginning_now(fd, may_wait=may_wait)
    except PermissionError:
        return None
    except BlockingIOError as leased:
        raise WouldBlock(LEASED) from leased
    if has_settled(state):
        if len(_beginnings) >= _KEPT:
            _beginnings.clear()
        _beginnings[state] = found
    return found


def beginning_now(fd: int, *, may_wait: bool = False) -> Beginning:
    readable = reopen(fd, may_wait=may_wait)
    try:
        start, loader = os.pread(readable, _READ_AT_START, 0), None
        if start.startswith(ELF_MAGIC):
            path, state = _named_loader(readable, start), os.fstat(readable)
            is_roots = state.st_uid == 0 and not state.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
            loader = Loader(b"" if path in USUAL_LOADERS else path, not is_roots)
        return Beginning(start[:_HEADER_BYTES], loader)
    finally:
        os.close(readable)


def digest(fd: int) -> str:
    """Return the SHA-256; "", which no rule names, for an unreadable, leased or too large file."""
    try:
        readable = reopen(fd)
        with open(readable, "rb", buffering=0) as file:
            if os.fstat(readable).st_size > MAX_HASHED_BYTES:
                return ""
            found = sha256()
            while piece := file.read(_READ_AT_ONCE_BYTES):
                found.update(piece)
            return found.hexdigest()
    except OSError:
        return ""


def fingerprint(fd: int, state: State, *, by_state_alone: bool) -> str:
    """Return a text that changes with the file.

    Writes and renames change its state. Stores through a mapping that is dirty already change only
    the digest. On another mount, other files lie beside it.
    """
    known = f"{state.mount} {state.inode} {state.size} {state.changed}"
    return known if by_state_alone else f"{known} {digest(fd)}"


# Scripts


class Shebang(NamedTuple):
    interpreter: bytes
    argument: bytes | None


def shebang(header: bytes) -> Shebang | None:
    """Read the first line as fs/binfmt_script.c does; None if the file is no script.

    Raises ExecRefused for a script that names no interpreter.
    """
    if not header.startswith(b"#!"):
        return None
    header = header[:_HEADER_BYTES].ljust(_HEADER_BYTES, b"\0")
    line, newline, _ = header[2:].partition(b"\n")
    if not newline:
        words = line.lstrip(_BLANKS)
        if not any(blank in words for blank in (b" ", b"\t", b"\0")):
            raise ExecRefused(errno.ENOEXEC)  # the interpreter's name is cut off
        line = line[:-1]
    line = line.rstrip(_BLANKS).lstrip(_BLANKS)
    end = next((at for at, byte in enumerate(line) if byte in b" \t\0"), len(line))
    interpreter, rest = line[:end], line[end:]
    if not interpreter:
        raise ExecRefused(errno.ENOEXEC)
    argument = None if rest.startswith(b"\0") else rest.lstrip(_BLANKS).partition(b"\0")[0]
    return Shebang(interpreter=interpreter, argument=argument or None)


def interpreter_argv(script: Shebang, called: bytes, argv: Sequence[bytes]) -> list[bytes]:
    """Return the interpreter's argv. `called`: the script's name as the kernel passes it on."""
    inserted = [script.interpreter]
    if script.argument is not None:
        inserted.append(script.argument)
    return [*inserted, called, *argv[1:]]


def command_line(argv: Sequence[bytes]) -> bytes:
    """Return what /proc/PID/cmdline shows of a fresh image; Linux makes an empty argv `[""]`."""
    return b"\0".join(argv) + b"\0"


# ELF files


def is_mapped(pid: int, fd: int) -> bool:
    """Return whether a process has mapped the file.

    On some file systems /proc/PID/maps shows another device than stat(2). So sigwrap maps the file
    as well, and compares the two lists.
    """
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
    """Return the start, and the device and inode, of each mapping."""
    with os.fdopen(procfs.open_file(f"/proc/{pid}/maps"), "rb") as maps:
        lines = [line.split(b" ", 5) for line in maps]
    return [(int(words[0].partition(b"-")[0], 16), (words[3], words[4])) for words in lines]


def _named_loader(fd: int, start: bytes) -> bytes:
    is_native = start[_MACHINE_AT : _MACHINE_AT + 2] == _NATIVE  # the kernel ignores the class byte
    for header, entry in (_WIDE, _NARROW) if is_native else (_NARROW,):
        try:
            headers_at, entry_bytes, count = header.unpack_from(start)
            if entry_bytes == entry.size:
                return _named_in(_part(fd, start, headers_at, count * entry.size), entry, fd, start)
        except (struct.error, OverflowError, OSError):
            pass  # the file is cut off or broken: the kernel refuses it
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
