import ctypes
import errno
import os
import struct

from inside import named, native


def traced(request, pid):
    result = native(101, request, pid, 0, 0)
    if result == 0:
        os.waitpid(pid, 0x40000000)  # __WALL
        native(101, 17, pid, 0, 0)  # PTRACE_DETACH
    return named(result)


def reached_memory(pid):
    try:
        os.close(os.open(f"/proc/{pid}/mem", os.O_RDWR))
        return "opened"
    except OSError as refusal:
        return errno.errorcode[refusal.errno]


def wrote(pid):
    here = ctypes.create_string_buffer(8)
    at = int(open("/proc/self/maps").readline().split("-")[0], 16)
    words = struct.pack("QQ", ctypes.addressof(here), 8), struct.pack("QQ", at, 8)
    return named(native(311, pid, words[0], 1, words[1], 1, 0))


supervisor = os.getppid()
front = int(open(f"/proc/{supervisor}/stat").read().rpartition(")")[2].split()[1])
