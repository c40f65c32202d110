"""A socket whose last close waits until all was read that was sent, and that is full; then
/bin/true runs, and what came of that is said: `lingers.py HOW`.

asked: while the user is asked about a call that names it, another thread closes it, so the
supervisor has the last descriptor of it. What came of the call is said as well.
queue: it is sent to the control socket and closed here, while who is refused there has to wait."""

import fcntl
import os
import pathlib
import socket
import struct
import sys
import threading

from inside import spawn, tell

LINGERS, RESETS = struct.pack("ii", 1, 60), struct.pack("ii", 1, 0)
REFUSED_AT_ONCE = 10


def lingering():
    """It, and its other end."""
    server = socket.create_server(("127.0.0.1", 0))
    one = socket.create_connection(server.getsockname())
    other, _ = server.accept()
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, LINGERS)
    one.setblocking(False)
    try:
        while True:
            one.send(bytes(1 << 16))
    except BlockingIOError:
        return one, other


def run(other):
    """Meanwhile; after which it is reset."""
    true = spawn(lambda: os.execv("/bin/true", ["true"]))
    ran = os.waitpid(true, 0)[1]
    other.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETS)
    other.close()
    return ran


def asked():
    waits, goes = os.pipe()
    child = spawn(lambda: os.close(goes) or os.read(waits, 1))
    one, other = lingering()
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
    ran = run(other)
    caller.join()
    os.close(goes)
    os.waitpid(child, 0)
    tell([*results, ran])


def connected():
    (path,) = pathlib.Path(os.environ["SIGWRAP_STORE"], "control").glob("*.sock")
    end = socket.socket(socket.AF_UNIX)
    end.connect(str(path))
    return end


def queue():
    one, other = lingering()
    for _ in range(REFUSED_AT_ONCE):
        refused = connected()
        while refused.recv(4096):
            pass
    end = connected()  # waits until the next one is let in
    try:
        socket.send_fds(end, [b"x"], [one.fileno()])
        one.close()
    except PermissionError:
        pass  # since Linux 6.16 it takes none
    end.shutdown(socket.SHUT_WR)
    try:
        while end.recv(4096):
            pass
    except ConnectionResetError:
        pass
    end.close()
    tell(run(other))


{"asked": asked, "queue": queue}[sys.argv[1]]()
