"""Connects to a server whose listener has ended: before, while a listener and a process of this
session have the same pid. Prints whether they got it."""

import os
import socket
import struct
import sys

name, pid = f"\0{sys.argv[1]}", int(sys.argv[2])


def connect(times):
    for _ in range(times):
        socket.socket(socket.AF_UNIX).connect(name)


def next_pid_is_that():
    with open("/proc/sys/kernel/ns_last_pid", "w") as file:
        file.write(str(pid - 1))


def listens_by_it(number):
    own = socket.socket(socket.AF_UNIX)
    own.bind(f"{name}.{number}")
    next_pid_is_that()
    own.listen()
    peer = own.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return struct.unpack("3i", peer)[0] == pid


def connects_as_it(_):
    next_pid_is_that()
    child = os.fork()
    if not child:
        if os.getpid() == pid:
            connect(3)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    return child == pid


connect(1)
took_it = any(map(listens_by_it, range(200)))
connect(3)
print(took_it and any(map(connects_as_it, range(200))), flush=True)
