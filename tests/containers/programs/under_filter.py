"""A program under the seccomp filter that a file holds, as a container's engine starts it."""

import ctypes
import os
import struct
import sys
from pathlib import Path

steps = Path(sys.argv[1]).read_bytes()
code = ctypes.create_string_buffer(steps, len(steps))
program = struct.pack("<HxxxxxxQ", len(steps) // 8, ctypes.addressof(code))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.c_char_p(program), 0, 0) == 0, ctypes.get_errno()
os.execvp(sys.argv[2], sys.argv[2:])
