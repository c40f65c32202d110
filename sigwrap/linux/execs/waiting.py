"""Build the program that a process runs while its exec waits for an approval.

It only executes the command in its arguments, with its own environment. That exec waits. Meanwhile
the caller's parent can continue, which may wait until a vfork child has executed a program. The
program needs no file, library or memory of its own, so it starts in any root. It is static, so it
reads no variable.

It has no special rights: sigwrap judges its exec like any other.
"""

from __future__ import annotations

import errno
import fcntl
import os
import struct

from sigwrap.machine import IS_AARCH64, IS_X86_64

NAME = b"sigwrap-stub"
TEXT = b"sigwrap-stub: the approved command failed\n"

# argv: the stub's name, the command's path, the command's argv. EACCES is already reported.
X86_64 = """
488d3550000000  lea rsi, [rip + name]
bf0f000000      mov edi, 15               # PR_SET_NAME
b89d000000      mov eax, 157              # prctl
0f05            syscall
488b0c24        mov rcx, [rsp]            # argc
488b7c2410      mov rdi, [rsp + 16]       # argv[1]
488d742418      lea rsi, [rsp + 24]       # argv + 2
488d54cc10      lea rdx, [rsp + rcx * 8 + 16]  # envp
b83b000000      mov eax, 59               # execve
0f05            syscall
4883f8f3        cmp rax, -13              # EACCES
7418            je 1f
488d352a000000  lea rsi, [rip + text]
bf02000000      mov edi, 2
ba2a000000      mov edx, 42
b801000000      mov eax, 1                # write
0f05            syscall
bf7e000000      1: mov edi, 126
b8e7000000      mov eax, 231              # exit_group
0f05            syscall
"""
AARCH64 = """
a1020010  adr x1, name
e00180d2  mov x0, 15                      // PR_SET_NAME
e81480d2  mov x8, 167                     // prctl
010000d4  svc 0
e20340f9  ldr x2, [sp]                    // argc
e00b40f9  ldr x0, [sp, 16]                // argv[1]
e1630091  add x1, sp, 24                  // argv + 2
e26f228b  add x2, sp, x2, lsl 3
42400091  add x2, x2, 16                  // envp
a81b80d2  mov x8, 221                     // execve
010000d4  svc 0
1f3400b1  cmn x0, 13                      // EACCES
c0000054  b.eq 1f
400080d2  mov x0, 2
41010030  adr x1, text
420580d2  mov x2, 42
080880d2  mov x8, 64                      // write
010000d4  svc 0
c00f80d2  1: mov x0, 126
c80b80d2  mov x8, 94                      // exit_group
010000d4  svc 0
"""
_ADDRESS = 0x400000
_HEADERS = 64 + 2 * 56
_LOADED, _STACK = 1, 0x6474E551
_READ, _WRITE, _EXECUTE = 4, 2, 1
_MFD_EXEC = 0x10  # since Linux 6.3
_ALL_SEALS = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


def program() -> bytes:
    """Return the ELF file. Raises OSError on other machines."""
    if not (IS_X86_64 or IS_AARCH64):
        raise OSError(errno.ENOEXEC, os.strerror(errno.ENOEXEC))
    machine, listing = (62, X86_64) if IS_X86_64 else (183, AARCH64)
    code = code_of(listing)
    end = _HEADERS + len(code)
    head = b"\x7fELF\2\1\1".ljust(16, b"\0") + struct.pack(
        "<HHIQQQIHHHHHH",
        *(2, machine, 1, _ADDRESS + _HEADERS, 64, 0, 0, 64, 56, 2, 0, 0, 0),
    )
    loaded = (_LOADED, _READ | _EXECUTE, 0, _ADDRESS, _ADDRESS, end, end, 0x1000)
    stack = (_STACK, _READ | _WRITE, 0, 0, 0, 0, 0, 16)
    return head + struct.pack("<IIQQQQQQIIQQQQQQ", *loaded, *stack) + code


def code_of(listing: str) -> bytes:
    lines = listing.strip().splitlines()
    return bytes.fromhex("".join(line.split()[0] for line in lines)) + NAME + b"\0" + TEXT


def make_file() -> int:
    """Return a descriptor of the program in a sealed memory file. Raises OSError."""
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    try:
        fd = os.memfd_create("sigwrap-stub", flags | _MFD_EXEC)
    except OSError as refusal:
        if refusal.errno != errno.EINVAL:
            raise
        fd = os.memfd_create("sigwrap-stub", flags)
    os.write(fd, program())
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _ALL_SEALS)
    return fd
