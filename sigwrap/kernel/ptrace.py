"""Stop another thread, read and change its registers, and release it.

All requests must come from the thread that seized. PTRACE_SEIZE sends no SIGSTOP, so a tracee that
waits in a seccomp notification goes on waiting.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Sequence

from sigwrap import calls
from sigwrap.bare import signal
from sigwrap.calls import I386, X86_64
from sigwrap.errors import KernelError
from sigwrap.kernel import procfs, signals
from sigwrap.kernel.libc import libc
from sigwrap.machine import IS_AARCH64, IS_X86_64, numbers_of

EVENT_EXEC = 4
EVENT_EXIT = 6
EVENT_STOP = 128
SYSCALL_STOP = 0x85  # SIGTRAP | 0x80, by O_TRACESYSGOOD

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
_O_EXITKILL = 0x100000  # if the supervisor dies, the tracee must not run on unverified
_TO_ITS_EXEC = _O_TRACESYSGOOD | _O_TRACEEXEC | _O_EXITKILL
TO_ITS_EXEC_OR_END = _TO_ITS_EXEC | _O_TRACEEXIT
TO_ITS_END = _O_TRACESYSGOOD | _O_TRACEEXIT | _O_EXITKILL

_ptrace = libc["ptrace"]
_ptrace.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
_ptrace.restype = ctypes.c_long

# i386 has ipc for semop, and socketcall for some socket calls.
_OF_I386 = frozenset(
    {256, 319, 177, 421, 117, 420, 385, 416, 102, 362, 364, 369, 370, 345, 371, 372, 337, 417}
)
# Any stop interrupts these. The last three lines may have a socket's timeout. The numbers of all
# architectures are in one set, because no other call of these numbers waits.
_FAIL_BY_STOPS = numbers_of(
    *("epoll_wait", "epoll_pwait", "epoll_pwait2", "rt_sigtimedwait", "semop", "semtimedop"),
    *("io_getevents", "io_pgetevents", "io_uring_enter"),
    *("connect", "accept", "accept4"),
    *("sendto", "sendmsg", "sendmmsg"),
    *("recvfrom", "recvmsg", "recvmmsg"),
) | (_OF_I386 if IS_X86_64 else frozenset())
_CLOSE = {calls.X86_64: 3, calls.I386: 6}  # the descriptor is closed, with any result
_FIRST_NEGATIVE = 1 << 31
_STOP_UNLESS_HANDLED = (signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)

_SYSCALL_INFO = struct.Struct("<B3xI16x3Q")
_WITH_LENGTH = struct.Struct("<QQ")  # an iovec

Registers = dict[str, int]

# The kernel's own error numbers, which no caller sees: the call restarts …
ERESTARTSYS = 512  # unless a handler without SA_RESTART runs
ERESTARTNOINTR = 513  # with any pending signals
ERESTARTNOHAND = 514  # unless a handler runs

_ALL_BITS = 0xFFFFFFFFFFFFFFFF
_LAST_ERROR = 4095
_NO_CALL = -1  # keeps the kernel from restarting a call
# Before Linux 5.19, an interrupt ends a notification with ERESTARTSYS, before any signal.
_RESTARTS = (ERESTARTNOINTR, ERESTARTSYS)


class Gone(KernelError):
    """The tracee has died, or was killed at its stop. wait(2) reports its end."""


class NotTraceable(KernelError):
    """Another process traces it, or sigwrap may not."""


def seize(tid: int, options: int = _TO_ITS_EXEC) -> None:
    if _ptrace(_SEIZE, tid, None, options) < 0:
        code = ctypes.get_errno()
        if code == errno.ESRCH:
            raise Gone("PTRACE_SEIZE", code)
        raise NotTraceable(f"PTRACE_SEIZE: {os.strerror(code)}", code)


def interrupt(tid: int) -> None:
    """Stop it before its next instruction. Its notification or exec goes on."""
    _request(_INTERRUPT, tid)


def resume(tid: int, signal_number: int = 0) -> None:
    _request(_CONT, tid, signal_number)


def resume_to_syscall(tid: int) -> None:
    """Let it run to the start or the end of its next system call."""
    _request(_SYSCALL, tid)


def detach(tid: int, signal_number: int = 0) -> None:
    """Release it from a stop. That also cancels a pending interrupt."""
    _request(_DETACH, tid, signal_number)


def let_go_unasked(tid: int, stopped_by: int) -> bool:
    """Release a process that made sigwrap its tracer. Returns whether it had.

    A process that calls PTRACE_TRACEME as its parent ends gets its new parent as tracer, which no
    filter can see. Its next exec would stop it by SIGTRAP, so that signal is dropped.
    """
    if procfs.numbers(tid, "TracerPid") != [os.getpid()]:
        return False
    try:
        detach(tid, 0 if stopped_by == signal.SIGTRAP else stopped_by)
    except KernelError:
        pass  # it was killed at its stop
    return True


def registers(tid: int) -> Registers:
    data = b""
    for kind, size in LAYOUT.sets:
        buffer = ctypes.create_string_buffer(size)
        _move_set(tid, kind, buffer, (_GETREGS, _GETREGSET))
        data += buffer.raw
    return LAYOUT.unpack(data)


def architecture(tid: int) -> int:
    """Return the architecture of the thread's current system call."""
    buffer = ctypes.create_string_buffer(_SYSCALL_INFO.size)
    _request(_GET_SYSCALL_INFO, tid, ctypes.addressof(buffer), size=_SYSCALL_INFO.size)
    _op, arch, *_rest = _SYSCALL_INFO.unpack(buffer.raw)
    return int(arch)


def error_in(values: Registers, numbers: frozenset[int]) -> int:
    """Return the errno of a finished call among `numbers`; 0 if there is none, or it restarts."""
    error = LAYOUT.error(values) if values[LAYOUT.number] in numbers else 0
    return error if error < ERESTARTSYS else 0


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


def make_again(tid: int, wait_status: int) -> None:
    """Restart a call that the stop interrupted, but that would have gone on without sigwrap.

    A call that no signal interrupts restarts after a handler, with or without SA_RESTART. Some
    calls (epoll_wait) fail at any stop: they restart unless a handler runs, which the kernel
    checks, or a signal stops the process. On aarch64 no register shows it, and nothing is done.
    """
    if not LAYOUT.tells_restarts:
        return
    values = registers(tid)
    error = LAYOUT.error(values)
    if error == ERESTARTSYS:
        if values["orig_rax"] in calls.NEVER_BROKEN_OFF[architecture(tid)]:
            set_registers(tid, values | {"rax": -ERESTARTNOINTR})
    elif error == errno.EINTR and values["orig_rax"] < _FIRST_NEGATIVE:
        is_close = values["orig_rax"] == _CLOSE[architecture(tid)]
        if not is_close and _is_of_tracing_alone(tid, wait_status):
            set_registers(tid, values | {"rax": -ERESTARTNOHAND})


def _is_of_tracing_alone(tid: int, wait_status: int) -> bool:
    """Return whether only tracing interrupted the call, unless a handler runs."""
    event, number = wait_status >> 16, os.WSTOPSIG(wait_status)
    if event:
        return event == EVENT_STOP and number == signal.SIGTRAP  # otherwise the process stops
    if number in _STOP_UNLESS_HANDLED:
        return signals.catches_or_ignores(tid, number)
    return number not in (signal.SIGSTOP, SYSCALL_STOP)


def would_begin_anew(pid: int) -> bool:
    """Return whether the process waits in a call whose timeout a stop would restart."""
    return procfs.call_of(pid, pid) in _FAIL_BY_STOPS


def write_memory(tid: int, address: int, data: bytes) -> None:
    """Write memory. Raises OSError if any of it is not writable."""
    fd = procfs.open_file(f"/proc/{tid}/mem", os.O_RDWR)
    try:
        if os.pwrite(fd, data, address) != len(data):
            raise OSError(errno.EFAULT, os.strerror(errno.EFAULT))
    finally:
        os.close(fd)


def _request(number: int, tid: int, data: int = 0, *, size: int = 0) -> None:
    if _ptrace(number, tid, size, data) < 0:
        code = ctypes.get_errno()
        kind = Gone if code == errno.ESRCH else KernelError
        raise kind(f"ptrace {number:#x}: {os.strerror(code)}", code)


def _error_in(result: int) -> int:
    error = -result & _ALL_BITS
    return error if error <= _LAST_ERROR else 0


class X86:
    """x86_64 and its i386 programs: ptrace shows the same registers for both."""

    sets = ((0, 27 * 8),)  # PTRACE_GETREGS
    result, number, stack = "rax", "orig_rax", "rsp"
    tells_restarts = True
    _packed = struct.Struct("<27Q")
    _names = (
        *("r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx"),
        *("rdx", "rsi", "rdi", "orig_rax", "rip", "cs", "eflags", "rsp", "ss", "fs_base"),
        *("gs_base", "ds", "es", "fs", "gs"),
    )
    _arguments = {  # noqa: RUF012
        X86_64: ("rdi", "rsi", "rdx", "r10", "r8", "r9"),
        I386: ("rbx", "rcx", "rdx", "rsi", "rdi", "rbp"),
    }
    _instruction_bytes = 2  # syscall, and int 0x80
    _code_segment_32 = 0x23

    def unpack(self, data: bytes) -> Registers:
        return dict(zip(self._names, self._packed.unpack(data), strict=True))

    def pack(self, values: Registers) -> list[bytes]:
        return [self._packed.pack(*(values[name] & _ALL_BITS for name in self._names))]

    def is_narrow(self, values: Registers) -> bool:
        return values["cs"] == self._code_segment_32

    def error(self, values: Registers) -> int:
        """Return the errno in the result, also a kernel-internal one, or 0.

        An error has all 64 bits, in both ABIs: the lower 32 alone may be an offset.
        """
        return _error_in(values["rax"])

    def comes_again(self, values: Registers, _after: int) -> bool:
        """Return whether the call that ends at `_after` will restart."""
        return self.error(values) in _RESTARTS

    def again(self, values: Registers) -> Registers:
        """Make the call restart with any pending signals."""
        return {**values, "rax": -ERESTARTNOINTR}

    def another_again(
        self, values: Registers, arch: int, number: int, arguments: Sequence[int]
    ) -> Registers:
        """Make it restart as another call."""
        return {**values, **self._given(arch, arguments), "orig_rax": number}

    def anew(
        self, values: Registers, arch: int, number: int, arguments: Sequence[int] = ()
    ) -> Registers:
        """Make a call, when the kernel no longer restarts anything itself."""
        return {
            **values,
            **self._given(arch, arguments),
            "rax": number,
            "orig_rax": _NO_CALL,
            "rip": values["rip"] - self._instruction_bytes,
        }

    def failed(self, values: Registers, error: int, _after: int) -> Registers:
        """Make the call fail. All other registers stay as they were."""
        return {**values, "rax": -error, "orig_rax": _NO_CALL}

    def _given(self, arch: int, arguments: Sequence[int]) -> Registers:
        return dict(zip(self._arguments[arch], arguments, strict=False))


class Aarch64:
    """The registers of aarch64. Tested in an emulator only."""

    sets = ((1, 34 * 8), (0x404, 4))  # NT_PRSTATUS, NT_ARM_SYSTEM_CALL
    result, number, stack = "x0", "x8", "sp"
    tells_restarts = False
    _packed = struct.Struct("<34Qi")
    _names = (*(f"x{number}" for number in range(31)), "sp", "pc", "pstate", "kernel's number")
    _instruction_bytes = 4  # svc

    def unpack(self, data: bytes) -> Registers:
        return dict(zip(self._names, self._packed.unpack(data), strict=True))

    def pack(self, values: Registers) -> list[bytes]:
        *words, number = (values[name] for name in self._names)
        data = self._packed.pack(*(word & _ALL_BITS for word in words), number)
        return [data[:-4], data[-4:]]

    def is_narrow(self, _values: Registers) -> bool:
        return False  # calls of 32-bit ARM programs are not answered

    def error(self, values: Registers) -> int:
        return _error_in(values["x0"])

    def comes_again(self, values: Registers, after: int) -> bool:
        return values["pc"] == after - self._instruction_bytes or self.error(values) in _RESTARTS

    def again(self, values: Registers) -> Registers:
        return values

    def another_again(
        self, values: Registers, arch: int, number: int, arguments: Sequence[int]
    ) -> Registers:
        return self.anew(values, arch, number, arguments)

    def anew(
        self, values: Registers, _arch: int, number: int, arguments: Sequence[int] = ()
    ) -> Registers:
        given = {f"x{position}": word for position, word in enumerate(arguments)}
        return {**values, **given, "x8": number, "kernel's number": _NO_CALL}

    def failed(self, values: Registers, error: int, after: int) -> Registers:
        return {**values, "x0": -error, "pc": after, "kernel's number": _NO_CALL}


LAYOUT: X86 | Aarch64 = Aarch64() if IS_AARCH64 else X86()
