"""Memory that is no file's, in the place of a file's mapping and with what is in it.

A page of one's own in a private mapping still goes with the file: whoever truncates the file takes
it away, and the next access reads what was written since, or is a SIGBUS. Anonymous memory, moved
over the mapping, has nothing in common with the file any more. That is done while we run from it,
so nothing may be written to it between the copy and the move, least of all by Python: both are left
to a few instructions that use their registers and their table only.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence

from sigwrap.bare import signal
from sigwrap.errors import KernelError
from sigwrap.linux import procfs
from sigwrap.linux.libc import syscall
from sigwrap.machine import IS_AARCH64, IS_X86_64, NUMBERS
from sigwrap.tuples import NamedTuple

# run(table, rows), a row being: start, copy, size, protection; instead of the protection it leaves
# what the last call returned.
_OF_X86_64 = bytes.fromhex(
    "53"  # push rbx
    "4154"  # push r12
    "4889fb"  # mov rbx, rdi
    "4989f4"  # mov r12, rsi
    # next row: memcpy(copy, start, size)
    "488b33"  # mov rsi, [rbx]
    "488b7b08"  # mov rdi, [rbx+8]
    "488b4b10"  # mov rcx, [rbx+16]
    "f3a4"  # rep movsb
    # mprotect(copy, size, protection)
    "488b7b08"  # mov rdi, [rbx+8]
    "488b7310"  # mov rsi, [rbx+16]
    "488b5318"  # mov rdx, [rbx+24]
    "b80a000000"  # mov eax, 10
    "0f05"  # syscall
    "4885c0"  # test rax, rax
    "751b"  # jnz the row's end
    # mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, start)
    "488b7b08"  # mov rdi, [rbx+8]
    "488b7310"  # mov rsi, [rbx+16]
    "4889f2"  # mov rdx, rsi
    "41ba03000000"  # mov r10d, 3
    "4c8b03"  # mov r8, [rbx]
    "b819000000"  # mov eax, 25
    "0f05"  # syscall
    # the row's end
    "48894318"  # mov [rbx+24], rax
    "4883c320"  # add rbx, 32
    "49ffcc"  # dec r12
    "75b3"  # jnz next row
    "415c"  # pop r12
    "5b"  # pop rbx
    "c3"  # ret
)
# The same; the bytes of each word are in their order in memory. A call leaves all registers but x0.
_OF_AARCH64 = bytes.fromhex(
    # next row: 16 bytes at a time, from start to copy
    "031040a9"  # ldp x3, x4, [x0]
    "050840f9"  # ldr x5, [x0, #16]
    "6600058b"  # add x6, x3, x5
    "6720c1a8"  # ldp x7, x8, [x3], #16
    "872081a8"  # stp x7, x8, [x4], #16
    "7f0006eb"  # cmp x3, x6
    "a1ffff54"  # b.ne the ldp before
    "e90300aa"  # mov x9, x0
    "ea0301aa"  # mov x10, x1
    # mprotect(copy, size, protection)
    "208540a9"  # ldp x0, x1, [x9, #8]
    "220d40f9"  # ldr x2, [x9, #24]
    "481c80d2"  # mov x8, #226
    "010000d4"  # svc #0
    "e00000b5"  # cbnz x0, the row's end
    # mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, start)
    "208540a9"  # ldp x0, x1, [x9, #8]
    "e20301aa"  # mov x2, x1
    "630080d2"  # mov x3, #3
    "240140f9"  # ldr x4, [x9]
    "081b80d2"  # mov x8, #216
    "010000d4"  # svc #0
    # the row's end
    "200d00f9"  # str x0, [x9, #24]
    "20810091"  # add x0, x9, #32
    "410500f1"  # subs x1, x10, #1
    "21fdff54"  # b.ne next row
    "c0035fd6"  # ret
)
_CODE = _OF_AARCH64 if IS_AARCH64 else _OF_X86_64 if IS_X86_64 else b""
_ROW = 4
_RESULT = 3

_MMAP = NUMBERS["mmap"]
_MPROTECT = NUMBERS["mprotect"]
_MUNMAP = NUMBERS["munmap"]
_READ_WRITE = 3
_READ_EXECUTE = 5
_OURS_IN_MEMORY = 0x8022  # MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE
_PAGE = os.sysconf("SC_PAGESIZE")


class Span(NamedTuple):
    start: int
    size: int
    protection: int


def take_off_their_files(spans: Sequence[Span]) -> list[bool]:
    """False for each that stays as it is: a system may forbid code that is in no file (SELinux's
    execmem), and another machine has other instructions."""
    found = procfs.stat(os.getpid()) if _CODE else None
    if found is None or found.threads != 1:  # another thread could write meanwhile
        return [False] * len(spans)
    try:
        code = _memory_with_code(_PAGE + sum(span.size for span in spans))
    except KernelError:
        return [False] * len(spans)
    table, copy = [], code + _PAGE
    for span in spans:
        table += [span.start, copy, span.size, span.protection]
        copy += span.size
    rows = (ctypes.c_uint64 * len(table))(*table)
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t)(code)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    run(ctypes.addressof(rows), len(spans))
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    moved = [rows[row + _RESULT] == rows[row] for row in range(0, len(table), _ROW)]
    _unmap(code, _PAGE)
    for row, is_moved in enumerate(moved):
        if not is_moved:
            _unmap(table[row * _ROW + 1], spans[row].size)
    return moved


def _memory_with_code(size: int) -> int:
    """The code has its first page."""
    start = syscall("mmap", _MMAP, 0, size, _READ_WRITE, _OURS_IN_MEMORY, -1, 0)
    ctypes.memmove(start, _CODE, len(_CODE))
    try:
        syscall("mprotect", _MPROTECT, start, _PAGE, _READ_EXECUTE)
    except KernelError:
        _unmap(start, size)
        raise
    return start


def _unmap(start: int, size: int) -> None:
    syscall("munmap", _MUNMAP, start, size)
