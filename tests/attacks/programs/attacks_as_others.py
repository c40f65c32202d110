"""As root: a process that has given up root, all but CAP_SYS_NICE, takes a descriptor from its
child, which is root, and advises on the memory of that one and on its own."""

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
    head = struct.pack("Ii", 0x20080522, 0)
    none, nice = struct.pack("6I", *[0] * 6), struct.pack("6I", SYS_NICE, SYS_NICE, 0, 0, 0, 0)
    pidfds = os.pidfd_open(root), os.pidfd_open(os.getpid())
    assert native(126, head, nice) == 0, "capset"
    advised = [named(native(440, each, ranges, 1, COLD, 0)) for each in pidfds]
    assert native(126, head, none) == 0, "capset"
    tell([named(native(438, pidfds[0], reads, 0)), *advised])


os.waitpid(spawn(attack), 0)
os.kill(int(os.read(reads, 20)), 9)
