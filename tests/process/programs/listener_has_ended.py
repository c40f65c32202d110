"""Serves a socket until its input ends. The process that called listen(2) has ended."""

import os
import socket
import sys
import threading


def accept():
    while True:
        server.accept()[0].close()


server = socket.socket(socket.AF_UNIX)
server.bind(f"\0{sys.argv[1]}")
listens = os.fork()
if not listens:
    server.listen()
    os._exit(0)
os.waitpid(listens, 0)
print(listens, flush=True)
threading.Thread(target=accept, daemon=True).start()
sys.stdin.read()
