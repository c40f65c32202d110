"""What so many connections to a server of its own take, in seconds, or datagrams to one."""

import os
import socket
import sys
import time

count, way = int(sys.argv[1]), sys.argv[2]
family = socket.AF_UNIX if way == "unix" else socket.AF_INET
kind = socket.SOCK_DGRAM if way == "datagram" else socket.SOCK_STREAM
server = socket.socket(family, kind)
if way == "unix":
    server.bind(f"connects-{os.getpid()}")
else:
    server.bind(("127.0.0.1", 0))
address = server.getsockname()
took = 0.0
if way == "datagram":
    client = socket.socket(family, kind)
    started = time.perf_counter()
    for _ in range(count):
        client.sendto(b"text", address)
    took = time.perf_counter() - started
else:
    server.listen()
    for _ in range(count):
        client = socket.socket(family, kind)
        started = time.perf_counter()
        client.connect(address)
        took += time.perf_counter() - started
        accepted, _ = server.accept()
        client.close()
        accepted.close()
if way == "unix":
    os.unlink(address)
print(took)
