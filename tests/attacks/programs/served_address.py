"""Connects to an address in a mapped file that is never read, and says how that fails."""

import ctypes
import errno
import os
import socket
import sys

PROT_READ, MAP_PRIVATE = 1, 2
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.connect.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_uint]

libc.mount(b"nothing", b"/nowhere", b"nothing", 0, None)  # its failure doesn't matter
file = os.open(sys.argv[1], os.O_RDONLY)
served = libc.mmap(None, 4096, PROT_READ, MAP_PRIVATE, file, 0)
end = socket.socket()
if os.fork() == 0:
    libc.connect(end.fileno(), served, 16)
    os._exit(ctypes.get_errno())  # at once: its memory is locked while it is read
print(errno.errorcode[os.waitstatus_to_exitcode(os.wait()[1])])
