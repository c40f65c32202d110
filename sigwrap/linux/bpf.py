"""The seccomp filter, as classic BPF.

Why not libseccomp: loading it costs a sixth of the start-up budget and a library that must be
found on a machine that may not have it, and here the exact width of each comparison matters. The
kernel truncates a signal number, an fcntl command and an ioctl request to 32 bits, so only the low
word is compared: a caller that fills the upper half must not slip past. tests/kernel/test_bpf.py
runs this program and libseccomp's over the same calls and demands the same verdicts.
"""

from __future__ import annotations

import errno
import struct

from sigwrap.linux.syscalls import (
    AUDIT_ARCH_I386,
    AUDIT_ARCH_X86_64,
    BIRTH_NUMBERS,
    CLONE_THREAD,
    NUMBERS,
    REFUSED_BY_ARGUMENT,
    SELECTED_BY_ARGUMENT,
    SIGNAL_ARGUMENT,
    X32_BIT,
)

ALLOW = 0x7FFF0000
NOTIFY = 0x7FC00000
_FAIL_WITH = 0x00050000
REFUSE_ABI = _FAIL_WITH | errno.ENOSYS
REFUSE = _FAIL_WITH | errno.EPERM

Instruction = tuple[int, int, int, int]  # code, jump if true, jump if false, operand

_LOAD_WORD = 0x20
_JUMP = 0x05
_JUMP_EQUAL = 0x15
_JUMP_BITS = 0x45
_RETURN = 0x06

_NUMBER_OFFSET = 0
_ARCH_OFFSET = 4
_ARGUMENTS_OFFSET = 16

_NO_SYSCALL = 0xFFFFFFFF  # what a tracer leaves behind to skip a call; has the x32 bit set


def mediation_filter(
    unlogged_signals: frozenset[int] = frozenset(), *, births: bool = False
) -> list[Instruction]:
    """`unlogged_signals` may be sent by anybody to anybody, without a word to the supervisor;
    with `births` it hears of every process that is about to be made."""
    # Signal 0 asks, it sends nothing.
    free = (0, *sorted(unlogged_signals))
    return [
        _load(_ARCH_OFFSET),
        (_JUMP_EQUAL, 1, 0, AUDIT_ARCH_X86_64),
        *_jump_over(native := _native_only() + _by_number(AUDIT_ARCH_X86_64, free, births)),
        *native,
        (_JUMP_EQUAL, 1, 0, AUDIT_ARCH_I386),
        *_jump_over(i386 := _by_number(AUDIT_ARCH_I386, free, births)),
        *i386,
        _return(REFUSE_ABI),
    ]


def encode(program: list[Instruction]) -> bytes:
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in program)


def _native_only() -> list[Instruction]:
    return [
        _load(_NUMBER_OFFSET),
        *_when_equal(_NO_SYSCALL, [_return(ALLOW)]),
        (_JUMP_BITS, 0, 1, X32_BIT),
        _return(NOTIFY),
    ]


def _by_number(arch: int, free_signals: tuple[int, ...], births: bool) -> list[Instruction]:
    program = [_load(_NUMBER_OFFSET)]
    for name, number in NUMBERS[arch].items():
        program += _when_equal(number, _verdict(name, free_signals))
    for name, number in BIRTH_NUMBERS[arch].items() if births else ():
        program += _when_equal(number, _birth_verdict(name))
    return [*program, _return(ALLOW)]


def _verdict(name: str, free_signals: tuple[int, ...]) -> list[Instruction]:
    if name in SIGNAL_ARGUMENT:
        program = [_load_argument(SIGNAL_ARGUMENT[name])]
        for number in free_signals:
            program += _when_equal(number, [_return(ALLOW)])
        return [*program, _return(NOTIFY)]
    if name in SELECTED_BY_ARGUMENT:
        position, values = SELECTED_BY_ARGUMENT[name]
        program = [_load_argument(position)]
        for value in REFUSED_BY_ARGUMENT.get(name, ()):
            program += _when_equal(value, [_return(REFUSE)])
        for value in values:
            program += _when_equal(value, [_return(NOTIFY)])
        return [*program, _return(ALLOW)]
    return [_return(NOTIFY)]


def _birth_verdict(name: str) -> list[Instruction]:
    if name == "clone3":
        # Its flags lie in memory, where another thread can change them behind our back. As on a
        # kernel that hasn't got it, the C libraries use clone() then.
        return [_return(REFUSE_ABI)]
    if name == "clone":
        is_thread = (_JUMP_BITS, 0, 1, CLONE_THREAD)
        return [_load_argument(0), is_thread, _return(ALLOW), _return(NOTIFY)]
    return [_return(NOTIFY)]


def _when_equal(value: int, body: list[Instruction]) -> list[Instruction]:
    if len(body) > 255:
        raise ValueError("a conditional jump reaches 255 instructions")
    return [(_JUMP_EQUAL, 0, len(body), value), *body]


def _jump_over(body: list[Instruction]) -> list[Instruction]:
    """Further than a conditional jump reaches."""
    return [(_JUMP, 0, 0, len(body))]


def _load_argument(position: int) -> Instruction:
    return _load(_ARGUMENTS_OFFSET + 8 * position)


def _load(offset: int) -> Instruction:
    return (_LOAD_WORD, 0, 0, offset)


def _return(action: int) -> Instruction:
    return (_RETURN, 0, 0, action)
