"""Listens where a kill switch is expected, and says that everybody is to be killed.

fakes_killswitch.py PORT [undumpable|leaves|other address]
"""

import contextlib
import ctypes
import socket
import sys

port, how = int(sys.argv[1]), sys.argv[2:]
if how == ["undumpable"]:
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # PR_SET_DUMPABLE: nobody may look into it
address = ("::1", port) if how == ["other address"] else ("127.0.0.1", port)
family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
listener = socket.create_server(address, family=family)
print("ready", flush=True)
while True:
    connection, _ = listener.accept()
    if how == ["leaves"]:
        listener.close()
    with connection, contextlib.suppress(OSError):
        if request := connection.recv(4096):
            print("asked", request, flush=True)
        connection.sendall(b'HTTP/1.1 200 OK\r\n\r\n{"killed": true, "reason": "fake"}')
    if how == ["leaves"]:
        print("left", flush=True)
        sys.stdin.read()
