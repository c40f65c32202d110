"""By way of a descriptor's owner: every call that sets one."""

import fcntl
import os
import socket
import struct

from inside import has_i386, i386, low, named, native


def pid_words(kind, pid):
    return struct.pack("ii", kind, pid)


SETOWNS = {
    "F_SETOWN": lambda fd, pid: native(72, fd, 8, pid),
    "F_SETOWN_EX": lambda fd, pid: native(72, fd, 15, pid_words(1, pid)),
    "F_SETOWN_EX thread": lambda fd, pid: native(72, fd, 15, pid_words(0, pid)),
    "FIOSETOWN": lambda fd, pid: native(16, fd, 0x8901, struct.pack("i", pid)),
    "SIOCSPGRP": lambda fd, pid: native(16, fd, 0x8902, struct.pack("i", pid)),
    "i386 F_SETOWN": lambda fd, pid: i386(55, fd, 8, pid),
    "i386 fcntl64": lambda fd, pid: i386(221, fd, 8, pid),
    "i386 F_SETOWN_EX": lambda fd, pid: i386(221, fd, 15, low(pid_words(1, pid))),
    "i386 FIOSETOWN": lambda fd, pid: i386(54, fd, 0x8901, low(struct.pack("i", pid))),
}
if not has_i386():
    SETOWNS = {name: call for name, call in SETOWNS.items() if not name.startswith("i386")}


def by_owner(call, pid, number):
    """A descriptor that signals its owner, with one byte to wake it."""
    one, other = socket.socketpair()
    result = call(one.fileno(), pid)
    fcntl.fcntl(one, 10, number)
    fcntl.fcntl(one, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    other.send(b"x")
    return named(result)
