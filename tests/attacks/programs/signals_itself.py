"""What has descriptors signal it that are its own: a socket, a terminal of its own."""

import fcntl
import os
import signal
import socket
import struct
import termios

from inside import block_all, has_i386, i386, low, named, native, spawn, tell

F_SETFL, F_SETOWN, F_SETSIG, FIOASYNC = 4, 8, 10, 0x5452


def arrived():
    info = signal.sigtimedwait([34], 5)
    return None if info is None else info.si_signo


def by_socket(turn_on, with_owner):
    one, other = socket.socketpair()
    fd = one.fileno()
    if with_owner:
        native(72, fd, F_SETOWN, os.getpid())
    native(72, fd, F_SETSIG, 34)
    result = named(turn_on(fd))
    other.send(b"x")
    return [result, arrived() if with_owner else None]


def on_its_own_terminal():
    os.setsid()
    block_all()
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    fcntl.fcntl(slave, F_SETSIG, 34)
    result = named(native(72, slave, F_SETFL, os.O_ASYNC | os.O_RDWR))
    kind, owner = struct.unpack("ii", fcntl.fcntl(slave, 16, bytes(8)))
    os.write(master, b"x\n")
    of_other_end = named(native(72, master, F_SETFL, os.O_ASYNC | os.O_RDWR))
    others_owner = struct.unpack("ii", fcntl.fcntl(master, 16, bytes(8)))[1]
    tell(
        [result, kind, owner == os.getpgrp(), arrived(), of_other_end, others_owner == os.getpid()]
    )


block_all()
ways = [
    lambda fd: native(72, fd, F_SETFL, os.O_ASYNC),
    lambda fd: native(16, fd, FIOASYNC, struct.pack("i", 1)),
]
if has_i386():
    ways.append(lambda fd: i386(221, fd, F_SETFL, os.O_ASYNC))
    ways.append(lambda fd: i386(54, fd, FIOASYNC, low(struct.pack("i", 1))))
tell([by_socket(way, with_owner) for way in ways for with_owner in (True, False)])
one, other = socket.socketpair()
native(72, one.fileno(), F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
flags = [fcntl.fcntl(one, fcntl.F_GETFL) & (os.O_ASYNC | os.O_NONBLOCK)]
native(16, one.fileno(), FIOASYNC, struct.pack("i", 0))
flags.append(fcntl.fcntl(one, fcntl.F_GETFL) & (os.O_ASYNC | os.O_NONBLOCK))
on_and_off = [os.O_ASYNC | os.O_NONBLOCK, os.O_NONBLOCK]
tell([flags == on_and_off, named(native(72, 99, F_SETFL, os.O_ASYNC))])
os.waitpid(spawn(on_its_own_terminal), 0)
