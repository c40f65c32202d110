"""As root: a process that has given up root, all but CAP_SYS_NICE, advises on the memory of its
child, which is root, and on its own."""

import ctypes
import mmap
import os
import signal
import struct

from inside import libc, named, native, spawn, tell

COLD, KEEP_CAPS, SYS_NICE = 20, 8, 1 << 23
page = mmap.mmap(-1, 4096)
page.write(b"here")
ranges = struct.pack("QQ", ctypes.addressof(ctypes.c_char.from_buffer(page)), 4096)
reads, writes = os.pipe()


def attack():
    root = spawn(signal.pause)
    os.write(writes, b"%d" % root)
    libc.prctl(KEEP_CAPS, 1, 0, 0, 0)
    os.setresuid(65534, 65534, 65534)
    head, sets = struct.pack("Ii", 0x20080522, 0), struct.pack("6I", SYS_NICE, SYS_NICE, 0, 0, 0, 0)
    assert native(126, head, sets) == 0, "capset"
    pidfds = os.pidfd_open(root), os.pidfd_open(os.getpid())
    tell([named(native(440, each, ranges, 1, COLD, 0)) for each in pidfds])


os.waitpid(spawn(attack), 0)
os.kill(int(os.read(reads, 20)), 9)
