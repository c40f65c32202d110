"""Stopping another thread, looking at it and sending it on.

All requests must come from the thread that seized. PTRACE_SEIZE, not ATTACH: it sends no SIGSTOP,
and a tracee that waits in a seccomp notification goes on waiting there.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from sigwrap.bare import signal
from sigwrap.errors import KernelError
from sigwrap.linux import proc_files, procfs
from sigwrap.linux.foreign_fds import taken
from sigwrap.linux.libc import libc
from sigwrap.linux.registers import LAYOUT, Registers
from sigwrap.machine import NUMBERS

EVENT_EXEC = 4
EVENT_EXIT = 6
EVENT_STOP = 128
SYSCALL_STOP = 0x85  # SIGTRAP | 0x80, by O_TRACESYSGOOD

_FIRST_RESTART = 512  # from here on, numbers that no caller ever sees

WALL = 0x40000000  # waitpid: threads and clones too

_CONT = 7
_DETACH = 17
_SYSCALL = 24
_GETREGS = 12
_SETREGS = 13
_GETREGSET = 0x4204
_SETREGSET = 0x4205
_SEIZE = 0x4206
_INTERRUPT = 0x4207
_GET_SYSCALL_INFO = 0x420E

_O_TRACESYSGOOD = 0x01
_O_TRACEEXEC = 0x10
_O_TRACEEXIT = 0x40
_O_EXITKILL = 0x100000  # should we die in between, the tracee must not run on unverified
_TO_ITS_EXEC = _O_TRACESYSGOOD | _O_TRACEEXEC | _O_EXITKILL
TO_ITS_EXEC_OR_END = _TO_ITS_EXEC | _O_TRACEEXIT
TO_ITS_END = _O_TRACESYSGOOD | _O_TRACEEXIT | _O_EXITKILL

_SYS_PIDFD_GETFD = NUMBERS["pidfd_getfd"]

_ptrace = libc["ptrace"]
_ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
_ptrace.restype = ctypes.c_long
_pidfd_getfd = libc["syscall"]
_pidfd_getfd.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_long, ctypes.c_long)
_pidfd_getfd.restype = ctypes.c_long

_SYSCALL_INFO = struct.Struct("<B3xI16x3Q")
_SYSCALL_ENTRY = 1
_WITH_LENGTH = struct.Struct("<QQ")  # an iovec


class Gone(KernelError):
    """The tracee has died, or was killed out of its stop; its end is reported by wait."""


class NotTraceable(KernelError):
    """Somebody else traces it, or we may not."""


def seize(tid: int, options: int = _TO_ITS_EXEC) -> None:
    if _ptrace(_SEIZE, tid, None, options) < 0:
        code = ctypes.get_errno()
        if code == errno.ESRCH:
            raise Gone("PTRACE_SEIZE", code)
        raise NotTraceable(f"PTRACE_SEIZE: {os.strerror(code)}", code)


def interrupt(tid: int) -> None:
    """It stops before it next runs an instruction of its own. What it is in goes on undisturbed:
    a notification (where its wait is killable), an exec."""
    _request(_INTERRUPT, tid)


def resume(tid: int, signal_number: int = 0) -> None:
    _request(_CONT, tid, signal_number)


def resume_to_syscall(tid: int, signal_number: int = 0) -> None:
    """Up to the start or the end of its next system call."""
    _request(_SYSCALL, tid, signal_number)


def detach(tid: int, signal_number: int = 0) -> None:
    """Only from a stop. A stop that was asked for but hasn't come yet is called off by it."""
    _request(_DETACH, tid, signal_number)


def let_go_unasked(tid: int, stopped_by: int) -> bool:
    """Whether it was traced by us. Who calls PTRACE_TRACEME as its parent ends makes whoever adopts
    it its tracer; a filter can't tell. Its next exec would stop it by SIGTRAP, so that is dropped.
    """
    if procfs.numbers(tid, "TracerPid") != [os.getpid()]:
        return False
    try:
        detach(tid, 0 if stopped_by == signal.SIGTRAP else stopped_by)
    except KernelError:
        pass  # it was killed out of its stop
    return True


def registers(tid: int) -> Registers:
    data = b""
    for kind, size in LAYOUT.sets:
        buffer = ctypes.create_string_buffer(size)
        _move_set(tid, kind, buffer, (_GETREGS, _GETREGSET))
        data += buffer.raw
    return LAYOUT.unpack(data)


def syscall_begun(tid: int) -> tuple[int, int, int, int] | None:
    """Of a thread at the start of a system call: architecture, number, two arguments."""
    op, arch, number, first, second = _syscall_info(tid)
    return (arch, number, first, second) if op == _SYSCALL_ENTRY else None


def architecture(tid: int) -> int:
    """By which the system call was made that it is in, or on its way out of."""
    return _syscall_info(tid)[1]


def _syscall_info(tid: int) -> tuple[int, int, int, int, int]:
    buffer = ctypes.create_string_buffer(_SYSCALL_INFO.size)
    _request(_GET_SYSCALL_INFO, tid, ctypes.addressof(buffer), size=_SYSCALL_INFO.size)
    op, arch, number, first, second = _SYSCALL_INFO.unpack(buffer.raw)
    return op, arch, number, first, second


def error_in(values: Registers, calls: frozenset[int]) -> int:
    """The errno that one of `calls` gives back; 0 where it will be made again, or is over."""
    error = LAYOUT.error(values) if values[LAYOUT.number] in calls else 0
    return error if error < _FIRST_RESTART else 0


def set_registers(tid: int, values: Registers) -> None:
    for (kind, size), data in zip(LAYOUT.sets, LAYOUT.pack(values), strict=True):
        buffer = ctypes.create_string_buffer(data, size)
        _move_set(tid, kind, buffer, (_SETREGS, _SETREGSET))


def _move_set(
    tid: int, kind: int, buffer: ctypes.Array[ctypes.c_char], requests: tuple[int, int]
) -> None:
    of_all, of_kind = requests
    if not kind:
        _request(of_all, tid, ctypes.addressof(buffer))
        return
    described = _WITH_LENGTH.pack(ctypes.addressof(buffer), len(buffer))
    vector = ctypes.create_string_buffer(described, len(described))
    _request(of_kind, tid, ctypes.addressof(vector), size=kind)


def read_memory(tid: int, address: int, size: int) -> bytes:
    """Fewer bytes where the mapping ends."""
    fd = proc_files.open_file(f"/proc/{tid}/mem")
    try:
        return os.pread(fd, size, address)
    finally:
        os.close(fd)


def write_memory(tid: int, address: int, data: bytes) -> None:
    """OSError where it is not all writable."""
    fd = proc_files.open_file(f"/proc/{tid}/mem", os.O_RDWR)
    try:
        if os.pwrite(fd, data, address) != len(data):
            raise OSError(errno.EFAULT, os.strerror(errno.EFAULT))
    finally:
        os.close(fd)


def take_descriptor(pid: int, fd: int) -> int:
    """A duplicate of another process's descriptor: the same open file, its offset shared. OSError
    where it isn't to be had, or could not be closed at once."""
    return taken(pid, fd, lambda: _duplicate(pid, fd))


def _duplicate(pid: int, fd: int) -> int:
    pidfd = os.pidfd_open(pid)
    try:
        found: int = _pidfd_getfd(_SYS_PIDFD_GETFD, pidfd, fd, 0)
    finally:
        os.close(pidfd)
    if found < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return found


def _request(number: int, tid: int, data: int = 0, *, size: int = 0) -> None:
    if _ptrace(number, tid, size, data) < 0:
        code = ctypes.get_errno()
        kind = Gone if code == errno.ESRCH else KernelError
        raise kind(f"ptrace {number:#x}: {os.strerror(code)}", code)
