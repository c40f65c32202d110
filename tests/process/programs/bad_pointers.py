import ctypes

libc = ctypes.CDLL(None, use_errno=True)
for path, argv in ((1, 0), (0, 0), (b"/bin/true", 1), (1 << 63, 0), (2**64 - 8, 2**64 - 8)):
    path = ctypes.c_ulong(path) if isinstance(path, int) else path
    libc.syscall(ctypes.c_long(59), path, ctypes.c_ulong(argv), None)
    print(ctypes.get_errno(), flush=True)
libc.syscall(ctypes.c_long(72), 0, 15, ctypes.c_ulong(8))
print(ctypes.get_errno())
