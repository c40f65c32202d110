"""A seccomp filter, run by a small interpreter."""

from __future__ import annotations

import struct

from sigwrap.calls import I386, TABLE, X86_64, OfSignal

ARCHES = (X86_64, I386)
# Which argument has the signal, by the name of the call.
SIGNAL_ARGUMENT = {
    call.name: call.handed_over.argument for call in TABLE if isinstance(call.handed_over, OfSignal)
}
Code = list[tuple[int, int, int, int]]


def verdict(program: Code, number: int, arch: int, *arguments: int) -> int:
    registers = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number & 0xFFFFFFFF, arch, 0, *registers)
    accumulator, at = 0, 0
    while True:
        code, if_true, if_false, operand = program[at]
        at += 1
        match code:
            case 0x20:
                (accumulator,) = struct.unpack_from("<I", data, operand)
            case 0x54:
                accumulator &= operand
            case 0x15:
                at += if_true if accumulator == operand else if_false
            case 0x25:
                at += if_true if accumulator > operand else if_false
            case 0x35:
                at += if_true if accumulator >= operand else if_false
            case 0x45:
                at += if_true if accumulator & operand else if_false
            case 0x05:
                at += operand
            case 0x06:
                return operand
            case _:
                raise AssertionError(f"unknown instruction {code:#x}")
