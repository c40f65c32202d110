"""The registers of a stopped thread, and the state of its system call. Pure.

x86_64: when a call that will restart returns to a stop, the result still shows that (ERESTARTSYS
and the like), and the number tells the kernel that there was a call.

aarch64: the kernel has already prepared the restart. The first argument is back in x0, the program
counter is before the instruction, and only x8 still holds the number. No register shows whether a
signal handler will interrupt the call.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from sigwrap.calls import I386, X86_64
from sigwrap.machine import IS_AARCH64

Registers = dict[str, int]

# The kernel's own error numbers: the call restarts …
ERESTARTSYS = 512  # unless a handler without SA_RESTART runs
ERESTARTNOINTR = 513  # with any pending signals
ERESTARTNOHAND = 514  # unless a handler runs

_ALL_BITS = 0xFFFFFFFFFFFFFFFF
_LAST_ERROR = 4095
_NO_CALL = -1  # keeps the kernel from restarting a call
# Before Linux 5.19, an interrupt ends a notification with ERESTARTSYS, before any signal.
_RESTARTS = (ERESTARTNOINTR, ERESTARTSYS)


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
