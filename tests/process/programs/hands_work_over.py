"""Connects to each socket that it is told, three times; then to servers of its own, of which the
first has ended as a process by then and the second was made by a child."""

import os
import socket
import sys


def connect(name: str) -> None:
    kind = socket.SOCK_SEQPACKET if name.endswith(".packets") else socket.SOCK_STREAM
    with socket.socket(socket.AF_UNIX, kind) as client:
        client.connect(f"\0{name[1:]}" if name.startswith("@") else name)


for name in sys.argv[2:]:
    for _ in range(3):
        connect(name)

for number, name in enumerate((f"{sys.argv[1]}/own", f"@{sys.argv[1]}/own")):
    made, making = os.pipe()
    if os.fork() == 0:
        server = socket.socket(socket.AF_UNIX)
        server.bind(f"\0{name[1:]}" if name.startswith("@") else name)
        server.listen()
        if number == 0 and os.fork():
            os._exit(0)
        os.write(making, b".")
        server.accept()
        os._exit(0)
    if number == 0:
        os.wait()
    os.read(made, 1)
    connect(name)
print("done")
