"""Limits of sigwrap and of the outside: by a thread's number, by a pointer that only its upper half
tells from none, from a pid namespace of the caller's own; and of the caller itself."""

import ctypes
import os
import resource
import struct
import sys

from inside import has_i386, i386, libc, low, named, native, parent_of, spawn, tell

outside, thread = map(int, sys.argv[1:])
LIMITS = struct.pack("QQ", 2999, 2999)
HIGH = 1 << 32  # its lower half is that of no pointer
NOFILE = resource.RLIMIT_NOFILE
CLONE_NEWUSER_AND_NEWPID = 0x30000000


def ancestors(pid):
    while pid > 1:
        pid = parent_of(pid)
        yield pid


def high():
    """The limits at that address."""
    flags = 0x100022  # MAP_FIXED_NOREPLACE, MAP_ANONYMOUS, MAP_PRIVATE
    at = libc.mmap(ctypes.c_void_p(HIGH), ctypes.c_size_t(4096), 3, flags, -1, ctypes.c_long(0))
    assert at == HIGH, hex(at)
    ctypes.memmove(at, LIMITS, len(LIMITS))
    return at


def of(pid):
    results = [
        native(302, pid, NOFILE, LIMITS, 0),
        native(302, pid, NOFILE, at, 0),
        native(302, pid | 7 << 32, NOFILE | 7 << 32, LIMITS, 0),
    ]
    if has_i386():
        results.append(i386(340, pid, NOFILE, low(LIMITS), 0))
        results.append(i386(340, pid, NOFILE, low(LIMITS), low(bytes(16))))
    return sorted({named(each) for each in results}, key=str)


at = high()
above = list(ancestors(os.getpid()))[: int(os.environ["ABOVE"])]
told = {f"above {pid}": of(pid) for pid in above}
told |= {"outside": of(outside), "its thread": of(thread)}


def in_namespaces_of_its_own():
    if libc.unshare(CLONE_NEWUSER_AND_NEWPID) != 0:
        tell([told, None])
        return

    def names_itself_and_its_child():
        child = spawn(lambda: os.read(reads, 1))
        tell([told, [os.getpid(), of(1), of(child), of(outside)]])
        os.write(writes, b"x")
        os.waitpid(child, 0)

    reads, writes = os.pipe()
    os.waitpid(spawn(names_itself_and_its_child), 0)


os.waitpid(spawn(in_namespaces_of_its_own), 0)
