"""Runs its words under a seccomp filter of its own, which allows everything."""

import ctypes
import os
import struct
import sys

libc = ctypes.CDLL(None, use_errno=True)
code = ctypes.create_string_buffer(struct.pack("<HBBI", 0x06, 0, 0, 0x7FFF0000), 8)
program = struct.pack("<HxxxxxxQ", 1, ctypes.addressof(code))
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.c_char_p(program)) == 0, ctypes.get_errno()
os.execvp(sys.argv[1], sys.argv[1:])
