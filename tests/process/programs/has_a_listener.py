import ctypes
import os
import struct
import sys

libc = ctypes.CDLL(None)
code = ctypes.create_string_buffer(struct.pack("<HBBI", 6, 0, 0, 0x7FFF0000))
program = struct.pack("<HxxxxxxQ", 1, ctypes.addressof(code))
libc.prctl(38, 1, 0, 0, 0)
fd = libc.syscall(317, 1, 8, program)
assert fd >= 0
os.set_inheritable(fd, True)
os.execv(sys.argv[1], sys.argv[1:])
