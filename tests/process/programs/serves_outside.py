"""Listens at each socket that it is told, `@` for one without a file, until its input ends."""

import os
import socket
import sys
import threading


def accept(server: socket.socket) -> None:
    while True:
        server.accept()[0].close()


for name in sys.argv[1:]:
    kind = socket.SOCK_SEQPACKET if name.endswith(".packets") else socket.SOCK_STREAM
    server = socket.socket(socket.AF_UNIX, kind)
    server.bind(f"\0{name[1:]}" if name.startswith("@") else name)
    server.listen()
    if not name.startswith("@"):
        os.chmod(name, 0o777)
    threading.Thread(target=accept, args=(server,), daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
