"""While somebody is asked about a call that names a socket, another thread closes it: so the
supervisor has the last descriptor of it, and whoever closes that waits until all was read that was
sent. Then /bin/true runs. It says what came of the call, and of that."""

import fcntl
import os
import socket
import struct
import sys
import threading

from inside import spawn, tell

LINGERS, RESETS = struct.pack("ii", 1, 60), struct.pack("ii", 1, 0)

waits, goes = os.pipe()
child = spawn(lambda: os.close(goes) or os.read(waits, 1))
server = socket.create_server(("127.0.0.1", 0))
one = socket.create_connection(server.getsockname())
other, _ = server.accept()
one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGERS)
one.setblocking(False)
try:
    while True:
        one.send(bytes(1 << 16))
except BlockingIOError:
    pass
fd = one.detach()
fcntl.fcntl(fd, fcntl.F_SETOWN, child)
results = []


def call():
    try:
        results.append(fcntl.fcntl(fd, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK))
    except PermissionError:
        results.append("EPERM")


caller = threading.Thread(target=call)
caller.start()
sys.stdin.readline()
os.close(fd)
tell("closed")
sys.stdin.readline()
true = spawn(lambda: os.execv("/bin/true", ["true"]))
ran = os.waitpid(true, 0)[1]
other.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETS)
other.close()
caller.join()
os.close(goes)
os.waitpid(child, 0)
tell([*results, ran])
