"""As root: a process that has given up root takes a descriptor from its child, which is root."""

import os
import signal

from inside import named, native, spawn, tell

reads, writes = os.pipe()


def attack():
    root = spawn(signal.pause)
    os.write(writes, b"%d" % root)
    pidfd = os.pidfd_open(root)
    os.setresuid(65534, 65534, 65534)
    tell(named(native(438, pidfd, reads, 0)))


os.waitpid(spawn(attack), 0)
os.kill(int(os.read(reads, 20)), 9)
