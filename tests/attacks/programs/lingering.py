"""A socket whose last close waits until all was read that was sent, and that is full."""

import socket
import struct

LINGERS, RESETS = struct.pack("ii", 1, 60), struct.pack("ii", 1, 0)


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


def reset(other):
    other.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESETS)
    other.close()
