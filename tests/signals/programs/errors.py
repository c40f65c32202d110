"""What the kernel says of calls that can't be: which of two mistakes it names."""

import fcntl
import os
import signal
import socket
import struct

from inside import named, native, spawn, tell
from owners import pid_words

GONE, LOWEST = (1 << 22) - 7, -(1 << 31)
F_SETOWN, F_GETOWN_EX, F_SETOWN_EX = 8, 16, 15
FIOSETOWN, SIOCSPGRP, TIOCSPGRP = 0x8901, 0x8902, 0x5410
sockets = [each for _ in range(3) for each in socket.socketpair()]
fd, bad = sockets[0].fileno(), 999
null = os.open("/dev/null", os.O_RDWR)
child = spawn(signal.pause)  # it leads no group


def owner(of):
    """As long as there is nobody in a group, the kernel says nobody."""
    kind, pid = struct.unpack("ii", fcntl.fcntl(of, F_GETOWN_EX, bytes(8)))
    return [kind, {child: "child", 0: "nobody"}.get(pid, "another")]


def word(number):
    return struct.pack("i", number)


told = {
    "group of no leader": [
        named(native(72, sockets[1].fileno(), F_SETOWN, -child)),
        named(native(72, sockets[2].fileno(), F_SETOWN_EX, pid_words(2, child))),
        named(native(16, sockets[3].fileno(), FIOSETOWN, word(-child))),
        named(native(16, sockets[4].fileno(), SIOCSPGRP, word(-child))),
    ],
    "gone": named(native(72, fd, F_SETOWN, -GONE)),
    "lowest": named(native(72, fd, F_SETOWN, LOWEST)),
    "lowest, ioctl": named(native(16, fd, SIOCSPGRP, word(LOWEST))),
    "lowest, bad": named(native(72, bad, F_SETOWN, LOWEST)),
    "gone, bad": named(native(72, bad, F_SETOWN, GONE)),
    "in memory, bad": named(native(72, bad, F_SETOWN_EX, 0)),
    "ioctl, bad": named(native(16, bad, FIOSETOWN, 0)),
    "ioctl": named(native(16, fd, FIOSETOWN, 0)),
    "ioctl, no socket": named(native(16, null, FIOSETOWN, 0)),
    "ioctl, no socket, gone": named(native(16, null, FIOSETOWN, word(GONE))),
    "foreground, bad": named(native(16, bad, TIOCSPGRP, 0)),
    "foreground, socket": named(native(16, fd, TIOCSPGRP, 0)),
    "foreground, device": named(native(16, null, TIOCSPGRP, word(-1))),
    "foreground, gone": named(native(16, fd, TIOCSPGRP, word(GONE))),
    "nothing to read, gone": named(native(310, GONE, 0, 0, 0, 0, 0)),
    "nothing to write, gone": named(native(311, GONE, 0, 0, 0, 0, 0)),
    "nothing to read there": named(native(310, GONE, struct.pack("QQ", 0, 8), 1, 0, 0, 0)),
    "a flag": named(native(310, child, 0, 0, 0, 0, 1)),
}
os.setpgid(child, child)
told["owners"] = [owner(each.fileno()) for each in sockets]
os.kill(child, 9)
os.waitpid(child, 0)
told["ended"] = named(native(72, fd, F_SETOWN, -child))
tell(told)
