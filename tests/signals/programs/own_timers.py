import ctypes
import os
import signal
import struct

from inside import block_all, named, native, tell

block_all()
event = struct.pack("<qii48x", 5, 34, 4)  # SIGEV_THREAD_ID
event = struct.pack("<qiii44x", 5, 34, 4, os.getpid())
timer = ctypes.c_int()
results = [
    named(native(222, 1, event, ctypes.byref(timer))),
    named(native(223, timer.value, 0, struct.pack("4q", 0, 0, 0, 1), None)),
]
signal.setitimer(signal.ITIMER_REAL, 0.001)
arrived = sorted([signal.sigwait({34, signal.SIGALRM}) for _ in range(2)])
tell([results, arrived])
