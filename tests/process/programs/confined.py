"""An outer filter, as a container has one: a call, and maybe its second argument, get an errno."""

import ctypes
import os
import struct
import sys

number, argument, code = (int(word, 0) for word in sys.argv[1:4])


def step(code, yes, no, operand):
    return struct.pack("<HBBI", code, yes, no, operand)


refuse = step(6, 0, 0, 0x00050000 | code)
allow = step(6, 0, 0, 0x7FFF0000)
test = [step(0x20, 0, 0, 24), step(0x15, 0, 1, argument), refuse] if argument else [refuse]
steps = [step(0x20, 0, 0, 0), step(0x15, 0, len(test), number), *test, allow]
code = ctypes.create_string_buffer(b"".join(steps))
program = struct.pack("<HxxxxxxQ", len(steps), ctypes.addressof(code))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.c_char_p(program), 0, 0) == 0, ctypes.get_errno()
os.execv(sys.argv[4], sys.argv[4:])
